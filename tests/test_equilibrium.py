"""The convex function behind the theory: written gradient and Hessian against autodiff of Ψ itself."""

import jax
import jax.numpy as jnp
import numpy as np

from onegrad.theory import bulk
from onegrad.theory.kernels import Factor, Features, factorise


def features(neurons=7, positions=9, rank=4) -> Features:
    rng = np.random.default_rng(0)
    weights = jnp.asarray(rng.dirichlet(np.ones(positions)))

    def factor(scale: float) -> Factor:
        values = jnp.asarray(rng.normal(size=(positions, rank)))
        root = jnp.linalg.cholesky(values.T @ (weights[:, None] * values))
        orthonormal = jnp.linalg.solve(root, values.T).T
        return Factor(
            jnp.asarray(scale * rng.normal(size=(neurons, rank))),
            orthonormal,
            jnp.asarray(rng.normal(size=rank)),
        )

    noise_at = jnp.asarray(rng.uniform(0.1, 1, size=(neurons, positions)))
    return Features(factor(1.0), factor(0.7), noise_at @ weights, noise_at, weights)


def sizes() -> bulk.Sizes:
    return bulk.Sizes(*(jnp.asarray(value) for value in (50.0, 70.0, 40.0, 1e-2)))


def potential(given: Features, unknowns):
    """Ψ as the module's docstring writes it."""
    count, size = given.noise.size, sizes()
    g, p = jnp.exp(unknowns[:count]), jnp.exp(unknowns[count:])
    each = size.width / count
    neurons = each * jnp.sum(
        g * (given.noise_at @ (given.weights * p) + size.width * size.ridge) - jnp.log(g)
    )
    samples = size.samples * jnp.sum(given.weights * (p - jnp.log(p)))

    def logdet(factor, times):
        c = factor.positions.T @ ((given.weights * p)[:, None] * factor.positions)
        s = each / times * factor.neurons.T @ (g[:, None] * factor.neurons)
        return times * jnp.linalg.slogdet(jnp.eye(c.shape[0]) + c @ s)[1]

    return neurons + samples + logdet(given.signal, 1.0) + logdet(given.bulk, size.bulk_dimension)


def test_gradient_and_hessian_are_those_of_the_potential():
    given = features()
    unknowns = jnp.asarray(np.random.default_rng(1).normal(size=16))
    log_g, log_p = unknowns[:7], unknowns[7:]
    at = bulk._conditions(given, sizes(), log_g, log_p)
    gradient = bulk._gradient(given, sizes(), at, log_g, log_p)
    np.testing.assert_allclose(gradient, jax.grad(lambda u: potential(given, u))(unknowns), rtol=1e-10)
    # Newton's matrix is the Hessian where the gradient vanishes; elsewhere it is the larger by its diagonal
    found = bulk.solve(given, sizes())
    unknowns = jnp.concatenate([found.log_g, found.log_p])
    at = bulk._conditions(given, sizes(), found.log_g, found.log_p)
    hessian = bulk._hessian(given, sizes(), at, found.log_g, found.log_p)
    exact = jax.hessian(lambda u: potential(given, u))(unknowns)
    np.testing.assert_allclose(hessian, exact, rtol=1e-6, atol=1e-6)
    assert np.linalg.eigvalsh(exact).min() > 0


def test_the_potential_is_convex():
    """Along random lines through random points, far from the solution too."""
    given, rng = features(), np.random.default_rng(2)
    hessian = jax.jit(jax.hessian(lambda u: potential(given, u)))
    for _ in range(20):
        values = np.linalg.eigvalsh(hessian(jnp.asarray(3 * rng.normal(size=16))))
        assert values.min() > -1e-9 * values.max()


def test_a_kernel_is_factorised_to_its_rank():
    rng = np.random.default_rng(3)
    root, at = rng.normal(size=(12, 3)), rng.normal(size=(40, 3))
    weights = jnp.full(40, 1 / 40)
    source = rng.normal(size=3)
    factor = factorise(
        jnp.asarray(root @ root.T), jnp.asarray(at @ root.T), jnp.asarray(root @ source), weights, 8
    )
    np.testing.assert_allclose(factor.neurons @ factor.neurons.T, root @ root.T, atol=1e-12)
    np.testing.assert_allclose(factor.neurons @ factor.label, root @ source, atol=1e-12)
    overlap = factor.positions.T @ factor.positions / 40
    np.testing.assert_allclose(overlap, np.diag([1.0] * 3 + [0.0] * 5), atol=1e-10)
