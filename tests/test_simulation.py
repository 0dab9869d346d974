"""Whole trials: against a plain NumPy implementation, in their limits, and the promises about seeds."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import ttest_ind

import onegrad as og
from onegrad import numerics, simulation, trial
from problems import general, paper


def dense_trial(problem: og.Problem, rng: np.random.Generator, rotate: bool = True) -> np.ndarray:
    """SPEC §1–5 word by word for one relu-link problem: n×n covariances, a random rotation of R^n."""
    mixture, n, k = problem.mixture, problem.mixture.dimension, problem.width
    basis = np.linalg.qr(rng.normal(size=(n, n)))[0] if rotate else np.eye(n)
    roots, means, trace = [], [], 0.0
    for c in mixture.components:
        spikes = basis[:, : problem.signal_dimension] @ c.spike_matrix(problem.signal_dimension)
        covariance = np.eye(n) + spikes @ spikes.T
        roots.append(np.linalg.cholesky(covariance))
        own = c.mean or ()
        means.append(basis[:, : len(own)] @ np.asarray(own) if own else np.zeros(n))
        trace += c.weight * np.trace(covariance)
    xi = basis[:, : problem.signal_dimension] @ problem.target.directions_in(mixture)[0]
    weights = [c.weight for c in mixture.components]

    def draw(count: int):
        component = rng.choice(len(weights), size=count, p=weights)
        z = rng.normal(size=(count, n))
        x = np.stack([means[c] + roots[c] @ z[i] for i, c in enumerate(component)])
        return x, np.tanh(x @ xi) + problem.target.noise * rng.normal(size=count)

    f, w = rng.normal(size=(k, n)) / trace**0.5, rng.normal(size=k) / k**0.5
    x, y = draw(problem.step_samples)
    h = x @ f.T
    residual = y - np.tanh(h) @ w / k**0.5
    f = f + problem.learning_rate * ((residual[:, None] * (1 - np.tanh(h) ** 2) * w / k**0.5).T @ x / len(y))
    x, y = draw(problem.samples)
    features = np.tanh(x @ f.T) / k**0.5
    gram = features.T @ features / len(y) + problem.ridge * np.eye(k)
    readout = np.linalg.solve(gram, features.T @ y / len(y))
    train = np.mean((y - features @ readout) ** 2)
    x, y_test = draw(5 * problem.samples)
    test = np.mean((y_test - np.tanh(x @ f.T) @ readout / k**0.5) ** 2)
    return np.asarray([train, test, (train + problem.ridge * readout @ readout) / 2])


@pytest.mark.slow
def test_agrees_with_a_dense_implementation_in_a_rotated_basis(seed):
    """Two roads for a general problem. False-alarm level 1e-6 an error; a doubled λ is rejected."""
    problem = general(activation="tanh")
    ours = og.simulate(problem, 250, seed, models="network")
    rng = np.random.default_rng(seed)
    theirs = np.asarray([dense_trial(problem, rng) for _ in range(250)])
    wrong = og.simulate(dataclasses.replace(problem, ridge=2e-3), 250, seed, models="network")
    for i, name in enumerate(("train_error", "test_error", "train_objective")):
        assert ttest_ind(ours[name].values[0], theirs[:, i], equal_var=False).pvalue > 1e-6
    planted = ttest_ind(wrong["train_objective"].values[0], theirs[:, 2], equal_var=False)
    assert planted.pvalue < 1e-6


def test_a_trained_network_is_what_the_trial_measured(seed):
    """train() and simulate() share trial 0; NumPy recomputes its errors from weights and samples."""
    problem = general(activation="tanh")
    network = og.train(problem, seed)
    measured = og.simulate(problem, 1, seed, models="network").isel(model=0, trial=0)
    recipe = trial.Recipe.of(problem, ("network",), 250, False, "float64")
    numbers = trial.Numbers.of(problem, 1)
    _, data_key = simulation.keys(simulation.stream(problem, seed), 0, "all")
    draws = trial.data_sets(recipe, numbers, data_key)
    errors = []
    for name, count in ((trial.TRAIN_DATA, 50), (trial.TEST_DATA, 250)):
        x, y = (np.asarray(part) for part in draws[name](jnp.arange(count)))
        errors.append(np.mean((y - network.predict(x)) ** 2))
    assert errors[0] == pytest.approx(float(measured.train_error), rel=1e-9)
    assert errors[1] == pytest.approx(float(measured.test_error), rel=1e-9)
    objective = (errors[0] + problem.ridge * network.readout @ network.readout) / 2
    assert objective == pytest.approx(float(measured.train_objective), rel=1e-9)
    x, y = (np.asarray(part) for part in draws[trial.STEP_DATA](jnp.arange(50)))
    h = x @ network.initial_weights.T
    w = network.second_layer
    residual = y - np.tanh(h) @ w / 30**0.5
    gradient = (residual[:, None] * (1 - np.tanh(h) ** 2) * w / 30**0.5).T @ x / 50
    np.testing.assert_allclose(network.gradient, gradient, rtol=1e-8, atol=1e-14)
    np.testing.assert_allclose(network.weights, network.initial_weights + 20 * gradient, rtol=1e-9)


def test_labels_and_attributes():
    data = og.simulate(general(), 3, seed=5)
    assert data.test_error.dims == ("model", "trial")
    assert list(data.model.values) == ["network", "hermite", "conditional"]
    assert list(data.trial.values) == [0, 1, 2]
    assert "misclassification" not in data
    assert og.Problem.from_json(data.attrs["problem"]) == general()
    for key in ("seed", "dtype", "device", "jax_version", "onegrad_version", "redrawn", "degree"):
        assert key in data.attrs


def test_trial_t_depends_on_problem_seed_and_t_alone():
    problem = general()
    whole = og.simulate(problem, 4, seed=3)
    part = og.simulate(problem, range(2, 4), seed=3)
    xr_part = whole.sel(trial=[2, 3])
    for name in ("train_error", "test_error", "train_objective"):
        np.testing.assert_array_equal(part[name], xr_part[name])
    alone = og.simulate(problem, range(3, 4), seed=3, models="conditional")
    np.testing.assert_allclose(
        alone.test_error.values[0], whole.test_error.sel(model="conditional", trial=[3]), rtol=1e-9
    )
    other = og.simulate(problem, 1, seed=4)
    assert not np.any(other.test_error.values == whole.test_error.values[:, :1])


def test_results_do_not_depend_on_the_block_size(monkeypatch):
    problem = general(samples=53)
    before = og.simulate(problem, 2)
    monkeypatch.setattr(trial, "BLOCK", 16)
    jax.clear_caches()
    after = og.simulate(problem, 2)
    jax.clear_caches()
    for name in before:
        np.testing.assert_allclose(after[name], before[name], rtol=1e-9)


def test_jit_vmap_and_eager_agree():
    problem = general(samples=24, width=10)
    recipe = trial.Recipe.of(problem, ("network", "hermite", "conditional"), 20, False, "float64")
    numbers = trial.Numbers.of(problem, 2)
    keys = jax.vmap(lambda t: jax.random.fold_in(numerics.root_key(1), t))(jnp.arange(3))
    batched = jax.vmap(lambda key: trial.run(recipe, numbers, key, key))(keys)
    for t in range(3):
        single = trial.run(recipe, numbers, keys[t], keys[t])
        for model, errors in single.items():
            for name in ("train_error", "test_error", "train_objective"):
                expected = float(getattr(errors, name))
                assert float(getattr(batched[model], name)[t]) == pytest.approx(expected, rel=1e-8)
    recipe = dataclasses.replace(recipe, models=("network",))
    with jax.disable_jit():
        eager = trial.run(recipe, numbers, keys[0], keys[0])["network"]
    expected = float(batched["network"].test_error[0])
    assert float(eager.test_error) == pytest.approx(expected, rel=1e-8)


def test_new_numbers_compile_nothing():
    og.simulate(paper(50, alpha=0.5), 1)
    compiled = trial.run._cache_size()
    og.simulate(paper(50, alpha=0.1, beta=0.9), 1)
    og.simulate(paper(50, ridge=0.7, learning_rate=3.3), 2, seed=8)
    og.simulate(paper(50, target=og.SingleIndex("relu", noise=0.4)), 1)
    assert trial.run._cache_size() == compiled
    og.simulate(paper(50, width=49), 1)
    assert trial.run._cache_size() == compiled + 1


def test_redraw_weights_keeps_the_data():
    point = numerics.root_key(0)
    first, second = (simulation.keys(point, t, "weights") for t in (0, 1))
    assert first[1] == second[1]
    assert first[0] != second[0]
    fresh = simulation.keys(point, 1, "all")
    assert fresh[1] != second[1]
    assert fresh[0] == second[0]
    # a network of one neuron that cannot learn leaves the labels' mean square: the data's own
    problem = general(ridge=1e9, width=1)
    data = og.simulate(problem, 3, redraw="weights", models="network")
    np.testing.assert_allclose(data.test_error.values, data.test_error.values[0, 0], rtol=1e-6)
    varied = og.simulate(problem, 3, redraw="all", models="network")
    assert np.ptp(varied.test_error.values) > 1e-3


def test_common_random_numbers_pair_nearby_problems(seed):
    near = [general(ridge=1e-3), general(ridge=1.05e-3)]

    def spread(**settings) -> float:
        a, b = (og.simulate(p, 6, seed, models="network", **settings).test_error for p in near)
        return float(np.std(a.values - b.values))

    assert spread(common_random_numbers=True) < 0.2 * spread()


def test_no_step_is_random_features():
    network = og.train(general(learning_rate=0.0), 0)
    np.testing.assert_array_equal(network.weights, network.initial_weights)


def test_infinite_ridge_learns_nothing():
    data = og.simulate(general(ridge=1e9), 1, models=("network", "hermite"))
    np.testing.assert_allclose(data.test_error, data.test_error[0, 0], rtol=1e-6)
    np.testing.assert_allclose(data.train_objective, data.train_error / 2, rtol=1e-6)


def test_a_component_of_weight_one_is_the_mixture(seed):
    component = og.Component(1.0, [1.0, 0.0], [4.0], [[0.0, 1.0]])
    other = og.Component(0.0, [9.0, 9.0], [3.0], [[1.0, 0.0]])
    settings = {"target": og.SingleIndex("relu", [0.3, 0.4]), "width": 12, "samples": 20}
    alone, beside = (
        og.simulate(
            og.Problem(og.Mixture(15, components), learning_rate=2.0, **settings),
            2,
            seed,
            common_random_numbers=True,
            degree=2,
        )
        for components in ([component], [component, other])
    )
    np.testing.assert_allclose(beside.test_error, alone.test_error, rtol=1e-8)


@pytest.mark.parametrize("activation", ["tanh", "erf"])
def test_a_high_degree_is_the_network(activation, seed):
    """Bulk pre-activations of unit size: degree 11 leaves 1e-4 of tanh, degree 1 does not suffice."""
    problem = paper(80, beta=0.3, activation=activation, on_spikes=True)
    errors = {}
    for degree in (1, 11):
        data = og.simulate(problem, 10, seed, models=("network", "hermite"), degree=degree)
        errors[degree] = np.abs(
            (data.train_error.sel(model="hermite") / data.train_error.sel(model="network") - 1).values
        ).mean()
    assert errors[11] < 0.2 * errors[1]


def test_float32_is_float64_rounded(seed):
    problem = paper(200, activation="tanh")
    full, single = (og.simulate(problem, 2, seed, dtype=d) for d in ("float64", "float32"))
    for name in full:
        np.testing.assert_allclose(single[name], full[name], rtol=1e-4)
    assert single.attrs["dtype"] == "float32"


def test_misclassification_counts_silence_as_wrong():
    """A network that says 0 everywhere is always wrong; one that says the label never."""
    mixture = og.Mixture(30, [og.Component(0.5, [9.0]), og.Component(0.5, [-9.0])])
    settings = {"target": og.ComponentLabels([1, -1]), "width": 40, "samples": 60}

    def silent(x):
        return 0 * x

    mute = og.Problem(mixture, activation=silent, learning_rate=1.0, **settings)
    loud = og.Problem(mixture, activation="identity", learning_rate=1.0, **settings)
    assert np.all(og.simulate(mute, 2, models="network").misclassification == 1)
    assert np.all(og.simulate(loud, 2, models="network").misclassification == 0)


@dataclasses.dataclass(frozen=True, eq=False)
class Pool:
    """A finite pool of inputs of two classes: what real images will look like."""

    x: np.ndarray
    classes: np.ndarray
    dimension: int = 20
    trace: float = 20.0
    bulk_std: float = 1.0

    def sample(self, key, count):
        order = jax.random.permutation(key, self.x.shape[0])[:count]
        return jnp.asarray(self.x)[order], jnp.asarray(self.classes)[order]


def test_other_inputs_come_in_through_the_same_door(seed):
    """A pool of 20 + 20 + 20 distinct rows is used up exactly; the hermite degree must be given."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, 2, size=60)
    x = rng.normal(size=(60, 20)) + 3 * (1 - 2 * classes[:, None])
    problem = og.Problem(
        Pool(x, classes),
        target=og.ComponentLabels([1, -1]),
        activation="relu",
        width=15,
        samples=20,
        learning_rate=1.0,
    )
    data = og.simulate(problem, 2, seed, degree=2, test_samples=20)
    assert list(data.model.values) == ["network", "hermite"]
    assert float(data.misclassification.sel(model="network").mean()) < 0.2
    with pytest.raises(og.InputError, match="degree must be given"):
        og.simulate(problem, 1)
    # 20 + 20 + 100 of 60: never copies of the last row
    with pytest.raises(og.InputError, match=r"must return inputs \(140, 20\).*got \(60, 20\)"):
        og.simulate(problem, 1, models="network")
    with pytest.raises(og.InputError, match="among network, hermite with inputs that are not a Mixture"):
        og.simulate(problem, 1, models="conditional")
    with pytest.raises(og.InputError, match='evaluation must be "fresh"'):
        og.simulate(problem, 1, evaluation="population")
    with pytest.raises(og.InputError, match="mixture is a Pool without a name, so it has no JSON"):
        problem.to_json()
    recipe = trial.Recipe.of(problem, ("network",), 20, False, "float64")
    draws = trial.data_sets(recipe, trial.Numbers.of(problem, 1), numerics.root_key(seed))
    rows = np.concatenate([np.asarray(draw(jnp.arange(20))[0]) for draw in draws.values()])
    assert len(np.unique(rows, axis=0)) == 60


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dimension": 20.5}, "mixture.dimension must be an integer"),
        ({"trace": -1.0}, "mixture.trace must be > 0"),
        ({"bulk_std": float("nan")}, "mixture.bulk_std must be > 0"),
    ],
)
def test_inputs_with_wrong_numbers_are_refused(changes, message):
    pool = Pool(np.zeros((9, 20)), np.zeros(9, int), **changes)
    with pytest.raises(og.InputError, match=message):
        og.Problem(pool, target=og.ComponentLabels([1]), width=2, samples=2, learning_rate=1.0)


@dataclasses.dataclass(frozen=True, eq=False)
class OutsideJax(Pool):
    def sample(self, key, count):
        return np.asarray(jax.random.normal(key, (count, 20))), np.zeros(count, int)


def test_inputs_that_jax_cannot_trace_are_refused():
    inputs = OutsideJax(np.zeros((1, 20)), np.zeros(1, int))
    problem = og.Problem(inputs, target=og.ComponentLabels([1]), width=2, samples=2, learning_rate=1.0)
    with pytest.raises(og.InputError, match="must be traceable by JAX"):
        og.simulate(problem, 1, models="network")


@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_exact_errors_are_float64_whatever_the_trial_is(activation):
    problem = general(activation=activation)
    single = og.simulate(problem, 2, evaluation="population", dtype="float32")
    double = og.simulate(problem, 2, evaluation="population")
    np.testing.assert_allclose(single.test_error, double.test_error, rtol=1e-3)


def test_the_callers_jax_settings_are_untouched():
    names = ("jax_enable_x64", "jax_default_matmul_precision", "jax_threefry_partitionable")
    with jax.enable_x64(False):
        before = [jax.config._read(name) for name in names]
        og.simulate(general(), 1)
        assert [jax.config._read(name) for name in names] == before
        assert jnp.ones(2).dtype == jnp.float32


def test_progress_is_reported():
    seen = []
    og.simulate(general(), 3, models="network", progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_standard_errors_shrink_like_one_over_root_trials(seed):
    data = og.simulate(general(), 200, seed, models="network")
    few, many = (float(og.sem(data.isel(trial=slice(t))).test_error[0]) for t in (50, 200))
    assert 1.2 < few / many < 3.4  # 2, and the sd itself is known to 10 % from 50 trials


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"trials": 0}, "trials must be an integer ≥ 1, got 0"),
        ({"trials": 2.5}, "trials must be an integer ≥ 1, got 2.5"),
        ({"trials": range(0)}, "trials must be a count or a non-empty range"),
        ({"seed": -1}, "seed must be an integer ≥ 0, got -1"),
        ({"models": ("netwrok",)}, 'did you mean "network"'),
        ({"models": ()}, "one or more different models"),
        ({"models": ("network", "network")}, "one or more different models"),
        ({"degree": 0}, "degree must be an integer ≥ 1"),
        ({"test_samples": 0}, "test_samples must be an integer ≥ 1"),
        ({"redraw": "data"}, "redraw must be one of 'all', 'weights', got 'data'"),
        ({"evaluation": "exact"}, "evaluation must be one of 'fresh', 'population'"),
        ({"dtype": "float16"}, "dtype must be one of 'float64', 'float32'"),
        ({"device": "tpu"}, "device must be one of 'cpu', 'gpu'"),
        (
            {"evaluation": "population", "models": "conditional"},
            'among network, hermite with evaluation="population"',
        ),
    ],
    ids=str,
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(og.InputError, match=message):
        og.simulate(general(), **settings)


def test_a_missing_device_is_refused_not_replaced():
    if any(device.platform == "gpu" for device in jax.devices()):
        assert "gpu" in og.simulate(general(), 1, device="gpu").attrs["device"]
        return
    with pytest.raises(og.RefusedError, match='device "gpu" is not available here'):
        og.simulate(general(), 1, device="gpu")


def test_too_many_indices_for_exact_averages_are_refused():
    directions = np.eye(4) * 0.5
    problem = general(target=og.MultiIndex("product", directions))
    with pytest.raises(og.InputError, match="of more than 3 indices"):
        og.simulate(problem, 1, evaluation="population")


def test_an_overflow_is_an_error_with_advice():
    with pytest.raises(og.NumericalError, match=r"did not reach its optimum .* increase ridge"):
        og.simulate(general(activation="square", learning_rate=1e160), 1, models="network")


def test_wrong_inputs_of_a_trained_network_are_refused():
    with pytest.raises(og.InputError, match=r"x must have shape \(rows, 40\), got \(3, 7\)"):
        og.train(general()).predict(np.zeros((3, 7)))


def test_equal_keys_and_seeds_are_equal():
    by_seed, by_key = og.train(general(), 3), og.train(general(), numerics.root_key(3))
    np.testing.assert_array_equal(by_seed.readout, by_key.readout)
