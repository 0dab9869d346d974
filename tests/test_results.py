"""Means, standard errors, paired differences: against NumPy."""

import numpy as np
import pytest
import xarray as xr

import onegrad as og


def dataset(trials: int = 5) -> xr.Dataset:
    rng = np.random.default_rng(1)
    values = rng.normal(size=(2, trials))
    return xr.Dataset(
        {"test_error": (("model", "trial"), values), "other": ("trial", np.zeros(trials))},
        {"model": ["network", "hermite"], "trial": range(trials)},
        {"seed": 1},
    )


def test_summary_is_mean_and_standard_error():
    data = dataset()
    values = data.test_error.values
    summary = og.summary(data)
    assert list(summary.statistic.values) == ["mean", "sem"]
    np.testing.assert_allclose(summary.test_error.sel(statistic="mean"), values.mean(1))
    np.testing.assert_allclose(summary.test_error.sel(statistic="sem"), values.std(1, ddof=1) / 5**0.5)
    assert "other" not in summary
    assert summary.attrs["seed"] == 1


def test_one_trial_has_no_standard_error():
    assert list(og.summary(dataset(1)).statistic.values) == ["mean"]
    with pytest.raises(og.InputError, match="trials must be ≥ 2 for a standard error, got 1"):
        og.sem(dataset(1))
    with pytest.raises(og.InputError, match="at least 2 trials"):
        og.paired_difference(dataset(1), "network", "hermite")


def test_paired_difference():
    data = dataset()
    gap = data.test_error.values[0] - data.test_error.values[1]
    mean, sem = og.paired_difference(data, "network", "hermite")
    assert mean == pytest.approx(gap.mean())
    assert sem == pytest.approx(gap.std(ddof=1) / 5**0.5)
    with pytest.raises(og.InputError, match="second must be one of"):
        og.paired_difference(data, "network", "hermit")
    with pytest.raises(og.InputError, match="error must be one of 'test_error'"):
        og.paired_difference(data, "network", "hermite", "train_error")
