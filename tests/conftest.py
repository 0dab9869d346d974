"""Every test runs inside onegrad's numerical scope, and passes for every seed.

ONEGRAD_TEST_SEED chooses another seed than 0; a statistical test that fails for one in many is wrong.
"""

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

# Small problems compile far longer than they run. One compilation cache serves a whole test run: the process
# that starts first makes it, its workers and the command lines they call inherit it. jax reads it when it is
# imported, so it is set before anything else.
if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
    folder = tempfile.mkdtemp(prefix="onegrad-tests-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ["JAX_COMPILATION_CACHE_DIR"] = folder
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.2"

import jax

from onegrad import numerics

MANY_MAPS = 30_000


@pytest.fixture(autouse=True)
def numerical_scope() -> Iterator[None]:
    with numerics.scope():
        yield


@pytest.fixture(autouse=True)
def room_for_compiled_programs() -> Iterator[None]:
    """Every compiled program is a few hundred memory maps, of which a Linux process may have 65,530."""
    yield
    maps = Path("/proc/self/maps")
    if maps.exists() and maps.read_bytes().count(b"\n") > MANY_MAPS:
        jax.clear_caches()


@pytest.fixture
def seed() -> int:
    return 1000 * int(os.environ.get("ONEGRAD_TEST_SEED", "0"))
