"""What every measurement starts from: a simulated person, and a learner after t answers."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

import numpy as np

from benchmarks import plain
from benchmarks.plain_query import Data, Draws
from sfihilo import Query, Response, Settings, State, begin, load, save, tell
from sfihilo import inverse as inv
from sfihilo.feasible import Feasible
from sfihilo.forward.tuning import select_hyperparameters
from sfihilo.history import FloatArray, generator
from sfihilo.inverse.features import FourierFeatures
from sfihilo.study.people.users import SimulatedUser, sample_user

# The last rounds before a measurement are really told, so that the warm start is a warm one.
_REALLY_TOLD = 5
# From nothing to the mode; each goes on where the one before it stopped.
_SEARCHES = 4


@dataclass(frozen=True, eq=False)
class Told:
    """Random policies and a person's replies to them, each compared with the one before."""

    policies: FloatArray
    responses: tuple[Response, ...]

    def query(self, index: int) -> Query:
        """What was asked in that round."""
        anchor = self.responses[index - 1].outcome if index else None
        return Query(index, self.policies[index], anchor)


def person(dimension: int = 8, seed: int = 0) -> SimulatedUser:
    """A person of the paper's study."""
    return sample_user(dimension, dimension, seed)


def tell_all(user: SimulatedUser, rounds: int, dimension: int = 8) -> Told:
    """Replies to as many random policies."""
    policies = generator(user.seed, 0, "benchmark policies").uniform(size=(rounds, dimension))
    responses: list[Response] = []
    for index, policy in enumerate(policies):
        anchor = responses[-1].outcome if responses else None
        responses.append(user.respond(Query(index, policy, anchor)))
    return Told(policies, tuple(responses))


def state_after(settings: Settings, told: Told, comparisons: int, seed: int = 0) -> State:
    """A learner after so many comparisons, as a running session would hold it.

    Most of the history is loaded at once, for time; the last rounds are told one by one.
    """
    loaded = max(comparisons + 1 - _REALLY_TOLD, 0)
    start = begin(settings, seed)
    policies = told.policies[:loaded]
    outcomes = [response.outcome for response in told.responses[:loaded]]
    if loaded >= settings.forward.warm_up:
        rng = generator(seed, loaded, "reselect")
        hyper = select_hyperparameters(settings.forward, policies, np.array(outcomes), rng)
    else:
        hyper = start.forward.hyper
    record = json.loads(save(start))
    record["policies"] = policies.tolist()
    record["outcomes"] = [outcome.tolist() for outcome in outcomes if outcome is not None]
    record["anchors"] = [None, *record["outcomes"][:-1]][:loaded]
    record["choices"] = [response.choice for response in told.responses[:loaded]]
    # Only where the search below begins.
    record["curvature"] = [0.1] * sum(choice is not None for choice in record["choices"])
    record["hyper"] = list(hyper)
    record["factored"] = loaded
    state = load(json.dumps(record))
    for _ in range(_SEARCHES):
        belief = state.inverse
        state = replace(state, inverse=inv.update(belief, belief.differences, belief.labels))
    for index in range(loaded, comparisons + 1):
        state = tell(state, told.query(index), told.responses[index])
    return state


def next_response(user: SimulatedUser, state: State, repeat: int) -> tuple[Query, Response]:
    """Another possible next round: its policy depends on `repeat`."""
    rng = generator(user.seed, repeat, "benchmark next")
    query = Query(state.round, rng.uniform(size=state.settings.policy_dim), state.history.anchor)
    return query, user.respond(query)


def plain_data(state: State) -> Data:
    """The history in the arrays of the plain transcription."""
    _, policies, outcomes = state.history.forward_data()
    first, second, labels, *_ = state.history.preference_data()
    return Data(policies, outcomes, first, second, labels, outcomes[-1])


def plain_features(state: State) -> plain.Features:
    """The learner's own random features."""
    features = state.inverse.features
    if not isinstance(features, FourierFeatures):
        raise ValueError(f"expected a learner with Fourier features, got {features}")
    # The learner keeps the frequencies divided by the length scale.
    length_scale = state.settings.inverse.length_scale
    return plain.Features(features.frequencies * length_scale, features.phases, length_scale)


def plain_constants(settings: Settings) -> plain.Constants:
    """The same tables for both."""
    return plain.Constants(
        jitter_forward=settings.forward.jitter,
        variance_floor=settings.forward.variance_floor,
        measurement_noise=settings.noise.measurement,
        reward_noise=settings.noise.reward,
        weight_scale=settings.inverse.weight_std,
        sharpness_mean=settings.inverse.log_sharpness_mean,
        sharpness_scale=settings.inverse.log_sharpness_std,
        iterations=settings.inverse.iterations,
        jitter_inverse=settings.inverse.jitter,
        tie_odds=settings.inverse.tie_odds,
        targets=settings.query.targets,
        main=settings.query.main_shortlist,
        variance=settings.query.variance_shortlist,
    )


def plain_draws(state: State) -> Draws:
    """The draws that the learner makes in its next question."""
    settings, seed, index = state.settings, state.seed, state.round
    query = settings.query
    count = query.pool_size(settings.policy_dim)
    pool = Feasible().sample(count, settings.policy_dim, generator(seed, index, "pool"), None)
    normals = generator(seed, index, "posterior").standard_normal(
        (state.inverse.features.size + 1, settings.inverse.samples)
    )
    targets = generator(seed, index, "targets").standard_normal(
        (query.targets, query.target_samples, settings.outcome_dim)
    )
    guard = generator(seed, index, "guard").permutation(count)[: query.guard_shortlist]
    return Draws(pool, normals, targets, guard)
