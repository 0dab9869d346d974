"""What to do with simulated errors: means with standard errors, paired differences."""

import numpy as np
import xarray as xr

from onegrad import _checks
from onegrad.errors import InputError

# The errors a simulation measures (SPEC §5), in the order tables show them.
ERRORS = ("train_error", "test_error", "train_objective", "misclassification")


def mean(data: xr.Dataset) -> xr.Dataset:
    """Mean over trials."""
    return data[_measured(data)].mean("trial", keep_attrs=True)


def sem(data: xr.Dataset) -> xr.Dataset:
    """Standard error of that mean: sd(trials)/√trials. Needs two trials or more.

    It covers what was redrawn over the trials and nothing else; see the attribute `redraw`.
    """
    count = data.sizes["trial"]
    if count < 2:
        raise _checks.refuse("trials", "≥ 2 for a standard error", count)
    return data[_measured(data)].std("trial", ddof=1, keep_attrs=True) / count**0.5


def summary(data: xr.Dataset) -> xr.Dataset:
    """`mean` and `sem` along a new dimension `statistic`; only the mean if there is one trial."""
    parts = {"mean": mean(data)}
    if data.sizes["trial"] > 1:
        parts["sem"] = sem(data)
    joined = xr.concat(list(parts.values()), dim="statistic")
    return joined.assign_coords(statistic=list(parts)).assign_attrs(data.attrs)


def paired_difference(
    data: xr.Dataset, first: str, second: str, error: str = "test_error"
) -> tuple[float, float]:
    """Mean and standard error of (first − second) over trials, which share data and weights."""
    _checks.choice("error", error, tuple(_measured(data)))
    models = [str(model) for model in data["model"].values]
    for name, model in (("first", first), ("second", second)):
        _checks.choice(name, model, models)
    if data.sizes["trial"] < 2:
        raise InputError("a paired standard error needs at least 2 trials, got 1")
    difference = (data[error].sel(model=first) - data[error].sel(model=second)).values
    return float(difference.mean()), float(difference.std(ddof=1) / np.sqrt(difference.size))


def _measured(data: xr.Dataset) -> list[str]:
    return [name for name in ERRORS if name in data]
