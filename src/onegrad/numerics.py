"""The scope every computation runs in: float64, full-precision products, one generator, one device.

JAX's settings are process-wide; onegrad changes them inside a `with` block only, so that a
program that uses JAX for itself finds its own settings untouched.
"""

import contextlib
from collections.abc import Callable, Iterator
from functools import wraps
from typing import ParamSpec, TypeVar

import jax

from onegrad import _checks
from onegrad.errors import InputError, RefusedError

# Random numbers are always drawn in float64 and then cast, so that a float32 run sees the same
# data as the float64 run of the same seed and differs from it by rounding alone.
DTYPES = ("float64", "float32")
DEVICES = ("cpu", "gpu")

P = ParamSpec("P")
R = TypeVar("R")


@contextlib.contextmanager
def scope(device: jax.Device | None = None) -> Iterator[None]:
    """Enter onegrad's numerical settings; leave the caller's as they were."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(jax.enable_x64(True))
        # "highest": float32 products in float32, never in TF32 or bfloat16
        stack.enter_context(jax.default_matmul_precision("highest"))
        stack.enter_context(jax.threefry_partitionable(True))
        stack.enter_context(jax.numpy_dtype_promotion("standard"))
        stack.enter_context(jax.numpy_rank_promotion("allow"))
        if device is not None:
            stack.enter_context(jax.default_device(device))
        yield


def scoped(function: Callable[P, R]) -> Callable[P, R]:
    """Decorator: run a public function inside `scope`."""

    @wraps(function)
    def inside(*args: P.args, **kwargs: P.kwargs) -> R:
        with scope():
            return function(*args, **kwargs)

    return inside


def find_device(name: str | None) -> jax.Device:
    """The device to run on; None is JAX's own choice. Never a silent fallback to another kind."""
    if name is None:
        try:
            return jax.devices()[0]
        except (RuntimeError, AssertionError) as error:  # JAX_PLATFORMS names what is not here
            raise RefusedError(f"JAX finds no device: {error or 'check JAX_PLATFORMS'}") from None
    _checks.choice("device", name, DEVICES)
    try:
        return jax.devices(name)[0]
    except RuntimeError:
        present = ", ".join(sorted({device.platform for device in jax.devices()}))
        raise RefusedError(
            f'device "{name}" is not available here (present: {present}); '
            "choose one of these, or install the jax build for your accelerator"
        ) from None


def root_key(seed: int | jax.Array) -> jax.Array:
    """A typed threefry key from an integer seed; a key passes through."""
    if isinstance(seed, jax.Array):
        if not jax.numpy.issubdtype(seed.dtype, jax.dtypes.prng_key) or seed.shape != ():
            raise InputError("key must be an integer seed or one jax.random.key, got an array")
        return seed
    seed = _checks.integer("seed", seed, at_least=0)
    if seed >= 2**63:
        raise _checks.refuse("seed", "an integer in [0, 2^63)", seed)
    return jax.random.key(seed, impl="threefry2x32")
