"""What onegrad runs on here, and whether its numbers are right on it."""

import json
import platform
import time
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version

import jax
import jax.numpy as jnp
import numpy as np

import onegrad
from onegrad import memory, numerics, ridge
from onegrad.activations import hermite_expansion

PACKAGES = ("jax", "jaxlib", "numpy", "scipy", "xarray", "h5netcdf", "rich", "cyclopts")
GEMM_SIZE = 1000
# the first two normals of seed 0, as drawn when this was written
RECORDED_NORMALS = (-0.2058421394796434, -0.7847657764467411)


@dataclass(frozen=True)
class Report:
    """`checks` maps what was tried to whether it came out right."""

    onegrad: str
    python: str
    platform: str
    packages: dict[str, str]
    devices: list[str]
    memory_gigabytes: float
    gemm_gigaflops: float
    checks: dict[str, bool]

    @property
    def healthy(self) -> bool:
        return all(self.checks.values())


@numerics.scoped
def examine() -> Report:
    return Report(
        onegrad=onegrad.__version__,
        python=platform.python_version(),
        platform=platform.platform(),
        packages={name: _version(name) for name in PACKAGES},
        devices=[f"{d.platform}:{d.id} ({d.device_kind})" for d in jax.devices()],
        memory_gigabytes=round(memory.available(jax.devices()[0]) / 1e9, 1),
        gemm_gigaflops=round(_gemm_rate(), 1),
        checks={
            "float64 products": _product_error() < 1e-13,
            "Hermite coefficients of relu": _hermite_error() < 1e-12,
            "ridge from a known solution": _ridge_error() < 1e-9,
            "random numbers as recorded": _same_normals(),
        },
    )


def as_json(report: Report) -> str:
    return json.dumps({**asdict(report), "healthy": report.healthy}, indent=2)


def as_text(report: Report) -> str:
    packages = ", ".join(f"{name} {number}" for name, number in report.packages.items())
    lines = [
        f"onegrad {report.onegrad}, Python {report.python}, {report.platform}",
        packages,
        f"devices: {', '.join(report.devices)}",
        f"memory available: {report.memory_gigabytes} GB",
        f"float64 matrix products: {report.gemm_gigaflops} GFLOP/s at {GEMM_SIZE}³",
    ]
    lines += [f"{'ok  ' if right else 'FAIL'}  {what}" for what, right in report.checks.items()]
    return "\n".join(lines)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "missing"


def _gemm_rate() -> float:
    a = jnp.ones((GEMM_SIZE, GEMM_SIZE))
    product = jax.jit(lambda a: a @ a)
    product(a).block_until_ready()
    best = np.inf
    for _ in range(3):
        start = time.perf_counter()
        product(a).block_until_ready()
        best = min(best, time.perf_counter() - start)
    return 2 * GEMM_SIZE**3 / best / 1e9


def _product_error() -> float:
    a = np.random.default_rng(0).normal(size=(200, 200))
    return float(np.max(np.abs(np.asarray(jnp.asarray(a) @ a) - a @ a)) / np.max(np.abs(a @ a)))


def _hermite_error() -> float:
    """E[relu(z)] = 1/√(2π), E[relu(z) z] = 1/2."""
    found = hermite_expansion("relu", 1.0, 1).coefficients
    return float(np.max(np.abs(found - [1 / np.sqrt(2 * np.pi), 0.5])))


def _ridge_error() -> float:
    features = jnp.diag(jnp.asarray([1.0, 2.0, 3.0]))
    found = ridge.solve(features, jnp.ones(3), jnp.asarray(1.0)).weights / 3**0.5
    exact = np.asarray([1, 2, 3]) / (np.asarray([1, 4, 9]) + 9.0)
    return float(np.max(np.abs(np.asarray(found) - exact)))


def _same_normals() -> bool:
    """Seeds mean the same everywhere: two numbers of the generator, written down."""
    drawn = jax.random.normal(numerics.root_key(0), (2,), jnp.float64)
    return bool(np.allclose(np.asarray(drawn), RECORDED_NORMALS, rtol=1e-12))
