"""Every test runs inside onegrad's numerical scope, and passes for every seed.

ONEGRAD_TEST_SEED chooses another seed than 0; a statistical test that fails for one in many is wrong.
"""

import os
from collections.abc import Iterator

import pytest

from onegrad import numerics


@pytest.fixture(autouse=True)
def numerical_scope() -> Iterator[None]:
    with numerics.scope():
        yield


@pytest.fixture
def seed() -> int:
    return 1000 * int(os.environ.get("ONEGRAD_TEST_SEED", "0"))
