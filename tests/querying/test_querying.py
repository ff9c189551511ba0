"""The query rules against plain loops written from the equations."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from math import exp, log, pi, sqrt

import numpy as np
import pytest

from benchmarks import scenario
from benchmarks.reference import model
from benchmarks.reference.loops import (
    ForwardByInverse,
    LookaheadByLoops,
    entropy,
    similarity,
)
from sfihilo import Settings, State, explain, querying
from sfihilo import forward as fw
from sfihilo.feasible import Feasible
from sfihilo.forward import Hyperparameters
from sfihilo.history import FloatArray, generator
from sfihilo.inverse import InverseSettings
from sfihilo.querying import RULES, Decision, QuerySettings, Situation, lookahead
from sfihilo.querying import rule as named_rule
from sfihilo.querying.labels import LabelModel
from tests.small import played, situation_of, small, with_observation

TINY = Settings.paper(
    3,
    2,
    inverse=InverseSettings(feature_count=16, samples=12),
    query=QuerySettings(
        pool_minimum=60,
        pool_per_dimension=1,
        targets=5,
        main_shortlist=3,
        variance_shortlist=2,
        guard_shortlist=2,
    ),
)


@cache
def tiny_state(count: int = 14, candidate_outcomes: int = 0) -> State:
    query = replace(TINY.query, candidate_outcomes=candidate_outcomes)
    return played(replace(TINY, query=query), count)


def plain_forward(state: State) -> model.Forward:
    data = state.history.forward_data()
    constants = scenario.plain_constants(state.settings)
    return model.fit_forward(data.policies, data.outcomes, *state.forward.hyper, constants)


def theta_of(state: State) -> FloatArray:
    posterior = state.rule_posterior()
    return np.column_stack([posterior.weights, posterior.log_sharpness])


def target_normals(state: State, count: int) -> FloatArray:
    shape = (count, state.settings.query.target_samples, state.settings.outcome_dim)
    return generator(state.seed, state.round, "targets").standard_normal(shape)


def loops_of(state: State, targets: FloatArray) -> LookaheadByLoops:
    anchor = state.history.anchor
    assert anchor is not None
    return LookaheadByLoops(
        plain_forward(state),
        scenario.plain_features(state),
        theta_of(state),
        anchor,
        targets,
        target_normals(state, len(targets)),
        state.settings.noise.reward,
    )


@pytest.mark.parametrize("tangent", [0, lookahead._TANGENT])
@pytest.mark.parametrize("count", [4, 14])
def test_lookahead_equals_the_triple_loop(
    count: int, tangent: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exactly without tangents, and with them to what `_TANGENT` promises."""
    monkeypatch.setattr(lookahead, "_TANGENT", tangent)
    state = tiny_state(count)
    selection = explain(state)
    loops = loops_of(state, selection.pool[selection.targets])
    expected = [loops.score(candidate) for candidate in selection.pool[selection.shortlist]]
    allowed = 1e-4 * max(expected) if tangent else 1e-6
    assert np.abs(selection.utilities - expected).max() < allowed
    assert np.ptp(expected) > 1e-4  # or else the comparison would say little
    best = selection.pool[selection.shortlist[int(np.argmax(expected))]]
    assert np.array_equal(selection.policy, best)


def scores_by_loops(state: State, pool: FloatArray) -> tuple[list[float], list[float], list[float]]:
    """Mutual information, s_rank and s_var of each policy, one after another."""
    loops, forward = loops_of(state, pool[:1]), ForwardByInverse(plain_forward(state))
    samples = theta_of(state)
    found = []
    for policy in pool:
        chances = [loops.label_probability(sample, forward.mean(policy)) for sample in samples]
        mean = sum(chances) / len(chances)
        information = entropy(mean) - sum(entropy(chance) for chance in chances) / len(chances)
        leverage = max(forward.residual(policy, policy), 0.0)
        epistemic = leverage * forward.forward.epistemic_scale
        fraction = epistemic / (epistemic + forward.forward.observation)
        found.append(
            (information, information * fraction.mean(), float((epistemic * fraction).mean()))
        )
    columns = np.array(found).T.tolist()
    return columns[0], columns[1], columns[2]


def test_pool_targets_and_shortlist() -> None:
    state = tiny_state()
    selection = explain(state)
    information, rank, variance = scores_by_loops(state, selection.pool)
    assert selection.scores == pytest.approx(information, abs=1e-5)
    by_rank, by_variance = np.argsort(-np.array(rank)), np.argsort(-np.array(variance))
    assert selection.targets.tolist() == by_rank[:5].tolist()
    guard = generator(state.seed, state.round, "guard").permutation(60)[:2]
    wanted = [*by_rank[:3], *by_variance[:2], *guard]
    assert selection.shortlist.tolist() == list(dict.fromkeys(int(index) for index in wanted))
    pool = generator(state.seed, state.round, "pool").uniform(size=(60, 3))
    assert np.array_equal(selection.pool, pool)


def test_mutual_information_takes_the_most_informative() -> None:
    state = tiny_state()
    selection = querying.mutual_information(situation_of(state))
    information, _, _ = scores_by_loops(state, selection.pool)
    assert selection.scores == pytest.approx(information, abs=1e-5)
    assert np.array_equal(selection.policy, selection.pool[int(np.argmax(information))])


def test_whole_paper_sized_round_against_the_plain_transcription() -> None:
    """Pool 4,000, 32 targets, 512 samples, 256 features, d = 8; the plain one is in double."""
    user = scenario.person()
    told = scenario.tell_all(user, 40)
    bench = scenario.Bench.make(Settings.paper(), user, told, 30, 2)
    for repeat in range(2):
        selection, looked = bench.learner(repeat), bench.plain(repeat)
        mine = dict(zip(selection.shortlist.tolist(), selection.utilities.tolist(), strict=True))
        theirs = dict(zip(looked.shortlist.tolist(), looked.utilities.tolist(), strict=True))
        assert len(mine) > 16
        assert mine.keys() == theirs.keys()
        assert max(abs(mine[key] - theirs[key]) for key in mine) < 1e-4 * max(theirs.values())
        assert scenario.compare(selection, looked).same


def test_tables_of_the_paper() -> None:
    query = QuerySettings()
    assert query.pool_size(8) == 4000
    assert query.pool_size(10) == 4000
    assert query.pool_size(20) == 8000
    assert (query.targets, query.target_samples, query.candidate_outcomes) == (32, 3, 0)
    assert (query.main_shortlist, query.variance_shortlist, query.guard_shortlist) == (16, 4, 4)


def test_label_update_is_a_martingale() -> None:
    """The two reweighted posteriors, each with its chance, are again the one before."""
    state = tiny_state()
    anchor = state.history.anchor
    assert anchor is not None
    labels = LabelModel.against(state.rule_posterior(), anchor, 0.03)
    outcomes = np.random.default_rng(0).uniform(size=(5, 4, 2))
    chance, weights = lookahead.label_update(labels, outcomes)
    assert chance.sum(axis=-1) == pytest.approx(np.ones((5, 4)))
    assert weights.sum(axis=-1) == pytest.approx(np.ones((5, 4, 2)))
    together = np.einsum("cdy,cdys->cds", chance, weights)
    assert together == pytest.approx(np.full((5, 4, 12), 1 / 12))


def integral_by_loops(
    state: State, targets: FloatArray, candidate: FloatArray, outcomes: FloatArray
) -> float:
    """eq:proposed_target_lookahead: the mean over outcomes of the candidate, all by loops."""
    loops = loops_of(state, targets)
    forward, samples = loops.forward, theta_of(state)
    count = len(samples)
    fitted = forward.forward
    now = loops.utility(None, [1 / count] * count)
    after = 0.0
    for outcome in outcomes:
        positive = [loops.label_probability(sample, outcome) for sample in samples]
        for given_label in (positive, [1 - p for p in positive]):
            chance = sum(given_label) / count
            weights = [p / sum(given_label) for p in given_label]
            utility = 0.0
            for target, normals in zip(targets, loops.normals, strict=True):
                own = max(forward.residual(candidate, candidate), 0.0) + fitted.regularisation
                gain = fitted.epistemic_scale * forward.residual(target, candidate)
                gain /= fitted.epistemic_scale * own + fitted.observation
                mean = forward.mean(target) + gain * (outcome - forward.mean(candidate))
                deviation = np.sqrt(forward.variance(target, candidate))
                averaged, within = 0.0, 0.0
                for normal in normals:
                    drawn = np.clip(mean + deviation * normal, 0, 1)
                    for sample, weight in zip(samples, weights, strict=True):
                        p = loops.label_probability(sample, drawn)
                        averaged += weight * p / len(normals)
                        within += weight * entropy(p) / len(normals)
                utility += (entropy(averaged) - within) / len(targets)
            after += chance * utility / len(outcomes)
    return now - after


def test_full_integral_equals_a_plain_monte_carlo_loop() -> None:
    state = tiny_state(14, candidate_outcomes=3)
    selection = explain(state)
    targets = selection.pool[selection.targets]
    normals = generator(state.seed, state.round, "candidates").standard_normal((3, 2))
    forward = ForwardByInverse(plain_forward(state))
    for place, candidate in enumerate(selection.pool[selection.shortlist[:3]]):
        deviation = np.sqrt(forward.variance(candidate, None))
        outcomes = np.clip(forward.mean(candidate) + deviation * normals, 0, 1)
        expected = integral_by_loops(state, targets, candidate, outcomes)
        assert selection.utilities[place] == pytest.approx(expected, abs=2e-5)


def looked_ahead(situation: Situation, targets: FloatArray, candidates: FloatArray) -> FloatArray:
    forward = situation.forward
    return lookahead.lookahead(situation, forward.at(targets), forward.at(candidates))


def certain(state: State) -> Situation:
    """A forward belief that knows the executed policies' outcomes, but little else."""
    data = state.history.forward_data()
    belief = fw.fit(
        state.settings.forward, Hyperparameters(0.3, 1e-9), 0.05, data.policies, data.outcomes
    )
    return situation_of(state, forward=with_observation(belief, np.full(2, 1e-14)))


def test_integral_and_mean_observation_coincide_where_the_outcome_is_certain() -> None:
    state = tiny_state()
    mean_observation = certain(state)
    integral = replace(mean_observation, settings=replace(TINY.query, candidate_outcomes=5))
    rng = np.random.default_rng(0)
    targets, executed = rng.uniform(size=(5, 3)), state.forward.policies[:4]
    one = looked_ahead(mean_observation, targets, executed)
    other = looked_ahead(integral, targets, executed)
    assert one == pytest.approx(other, abs=1e-4)
    elsewhere = rng.uniform(size=(4, 3))  # where it is not certain they are two things
    one = looked_ahead(mean_observation, targets, elsewhere)
    other = looked_ahead(integral, targets, elsewhere)
    assert np.abs(one - other).max() > 1e-3


class NoSpread(np.random.Generator):
    """Every draw is the mean, so that it does not matter which target gets which draw."""

    def __init__(self) -> None:
        super().__init__(np.random.PCG64(0))

    def standard_normal(self, size: tuple[int, ...]) -> FloatArray:  # type: ignore[override]
        return np.zeros(size)


def test_a_candidate_can_be_measured_at_other_targets_only() -> None:
    state = tiny_state()
    policies = np.random.default_rng(5).uniform(size=(4, 3))
    both = situation_of(state, random=lambda purpose: NoSpread())
    others = replace(both, settings=replace(TINY.query, own_target=False))
    found = looked_ahead(others, policies, policies)
    for place in range(4):
        rest = np.delete(policies, place, axis=0)
        alone = looked_ahead(both, rest, policies[[place]])
        assert found[place] == pytest.approx(alone[0], abs=1e-6)
    # Who is no target is measured at all of them, as ever.
    outsider = np.full((1, 3), 0.5)
    assert looked_ahead(others, policies, outsider) == pytest.approx(
        looked_ahead(both, policies, outsider), abs=1e-9
    )
    assert looked_ahead(others, policies[:1], policies[:1]).tolist() == [0]  # no other target
    assert np.abs(found - looked_ahead(both, policies, policies)).max() > 1e-4


def test_targets_can_be_sampled_anew_for_every_candidate() -> None:
    """The same without spread, and the same on average over random numbers; otherwise not."""
    state = tiny_state()
    targets, candidates = np.random.default_rng(5).uniform(size=(2, 4, 3))

    def utilities(common: bool, random: Callable[[str], np.random.Generator]) -> FloatArray:
        settings = replace(TINY.query, common_samples=common)
        return looked_ahead(
            replace(situation_of(state, random=random), settings=settings), targets, candidates
        )

    def of(seed: int) -> Callable[[str], np.random.Generator]:
        return lambda purpose: np.random.default_rng(seed)

    assert utilities(True, lambda purpose: NoSpread()) == pytest.approx(
        utilities(False, lambda purpose: NoSpread()), abs=1e-6
    )
    common, new = (
        np.array([utilities(each, of(seed)) for seed in range(300)]) for each in (True, False)
    )
    assert np.abs(common[0] - new[0]).max() > 1e-4
    error = (new - common).std(axis=0) / np.sqrt(300)
    assert (np.abs((new - common).mean(axis=0)) < 4 * error).all()
    assert (new.std(axis=0) > common.std(axis=0)).all()  # candidates differ by luck, too


class SameBlock(np.random.Generator):
    """The same numbers for everybody: (targets, samples, outcomes), or a copy per candidate."""

    def __init__(self) -> None:
        super().__init__(np.random.PCG64(0))
        self.asked: list[tuple[int, ...]] = []

    def standard_normal(self, size: tuple[int, ...]) -> FloatArray:  # type: ignore[override]
        self.asked.append(size)
        block = np.random.default_rng(3).standard_normal(size[-3:])
        return np.broadcast_to(block, size)


def test_new_samples_that_are_the_same_for_every_candidate_are_common_samples() -> None:
    state = tiny_state()
    policies = np.random.default_rng(5).uniform(size=(8, 3))
    targets, candidates = policies[:5], policies[5:]  # fewer candidates than targets
    found = []
    for common in (True, False):
        block = SameBlock()
        situation = situation_of(state, random=lambda purpose, block=block: block)
        settings = replace(TINY.query, common_samples=common)
        found.append(looked_ahead(replace(situation, settings=settings), targets, candidates))
    samples = (5, TINY.query.target_samples, TINY.outcome_dim)
    assert block.asked[:2] == [samples, (3, *samples)]  # each candidate has its own numbers
    assert found[0] == pytest.approx(found[1], abs=1e-6)


def test_integral_settles_with_more_draws() -> None:
    """Two estimates with other draws approach one another, not the mean observation."""
    state = tiny_state()
    rng = np.random.default_rng(3)
    targets, candidates = rng.uniform(size=(5, 3)), rng.uniform(size=(6, 3))

    def estimate(draws: int, seed: int) -> FloatArray:
        def random(purpose: str) -> np.random.Generator:
            return generator(seed if purpose == "candidates" else 0, 0, purpose)

        query = replace(TINY.query, candidate_outcomes=draws)
        return looked_ahead(situation_of(state, settings=query, random=random), targets, candidates)

    few = np.abs(estimate(10, 1) - estimate(10, 2)).mean()
    many = np.abs(estimate(160, 1) - estimate(160, 2)).mean()
    assert many < few / 2
    bias = np.abs(estimate(160, 1) - estimate(0, 1)).mean()
    assert bias > 2 * many


def test_certain_samples_still_give_finite_utilities() -> None:
    """With rewards so steep that every label is certain, a lookahead is zero, not NaN."""
    state = tiny_state()
    posterior = state.rule_posterior()
    mode = np.append(np.full(len(posterior.centre) - 1, 5.0), 40.0)
    steep = replace(
        posterior, centre=mode, covariance_root=np.zeros_like(posterior.covariance_root)
    )
    situation = situation_of(state, sampled=lambda: steep, gap_std=0.0)
    for rule in RULES.values():
        with np.errstate(under="ignore"):
            selection = rule(situation)
        assert np.isfinite(selection.policy).all()
        assert np.isfinite(selection.utilities).all()
        if rule is querying.boundary_lookahead:
            assert np.abs(selection.utilities).max() < 0.7


def test_random_covers_the_set_evenly() -> None:
    state = tiny_state(2)
    chosen = np.array(
        [
            querying.random(
                situation_of(state, random=lambda purpose, k=k: generator(k, 0, purpose))
            ).policy
            for k in range(400)
        ]
    )
    assert chosen.mean(axis=0) == pytest.approx(np.full(3, 0.5), abs=0.06)
    assert chosen.std(axis=0) == pytest.approx(np.full(3, sqrt(1 / 12)), abs=0.04)
    listed = np.linspace(0, 1, 4)[:, None] * np.ones(3)
    picks = [
        querying.random(
            situation_of(
                state,
                feasible=Feasible(choices=listed),
                random=lambda purpose, k=k: generator(k, 0, purpose),
            )
        ).policy[0]
        for k in range(400)
    ]
    counts = np.unique(picks, return_counts=True)[1]
    assert len(counts) == 4
    assert counts.min() > 60


@pytest.mark.parametrize("count", [1, 2, 7])
def test_pools_smaller_than_the_shortlist(count: int) -> None:
    state = tiny_state()
    listed = np.random.default_rng(0).uniform(size=(count, 3))
    for rule in RULES.values():
        selection = rule(situation_of(state, feasible=Feasible(choices=listed)))
        assert (listed == selection.policy).all(axis=1).any()


def test_every_rule_says_what_it_looked_at() -> None:
    state = played(small(Settings.paper(3, 2)), 4)
    for name, rule in RULES.items():
        selection = rule(situation_of(state))
        assert isinstance(selection, Decision)
        assert (selection.pool == selection.policy).all(axis=1).any()
        if name != "random":
            assert len(selection.scores) == len(selection.pool)
            assert np.isfinite(selection.scores).all()
        assert len(selection.utilities) == len(selection.shortlist)


@pytest.mark.parametrize("name", ["boundary", "tests.small:nothing", "no.module:rule", ""])
def test_unknown_rules(name: str) -> None:
    with pytest.raises(ValueError, match="rule: expected random, mutual_information"):
        named_rule(name)


def test_the_oracle_is_itself_right() -> None:
    """Hand figures for what the loops are made of, so that two wrongs cannot agree."""
    assert similarity(np.array([0.0, 0.0]), np.array([0.3, 0.4]), 0.5) == pytest.approx(exp(-0.5))
    assert entropy(0.5) == pytest.approx(log(2))
    assert entropy(0.9) == pytest.approx(-0.9 * log(0.9) - 0.1 * log(0.1))
    state = tiny_state()
    loops = loops_of(state, np.zeros((1, 3)))
    sample, outcome = theta_of(state)[0], np.array([0.3, 0.6])
    posterior = state.rule_posterior()
    gap = posterior.features(loops.anchor[None]) - posterior.features(outcome[None])
    beta = exp(sample[-1])
    margin = beta * float(gap[0] @ sample[:-1]) / sqrt(1 + pi / 8 * 2 * (beta * 0.02) ** 2)
    assert loops.label_probability(sample, outcome) == pytest.approx(1 / (1 + exp(-margin)))
