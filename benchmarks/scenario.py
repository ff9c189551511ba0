"""What is measured: a simulated person, a learner after t comparisons, one round, one whole run.

A round is computed by the learner and by the plain transcription, from the same state and draws.
`python -m benchmarks.scenario ROUNDS RULE` is one whole run; it prints its seconds and peak memory.
It lives here and not beside the study's times, because this module imports little: the libraries
that the study loads would be counted as the learner's memory.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.clock import Action
from benchmarks.reference import model, tuned
from benchmarks.reference.lookahead import (
    Data,
    Draws,
    Lookahead,
    LookaheadRule,
    boundary_lookahead,
    whole_round,
)
from sfihilo import (
    Query,
    Response,
    Settings,
    State,
    ask,
    begin,
    explain,
    load,
    recommend,
    save,
    tell,
)
from sfihilo import inverse as inv
from sfihilo.feasible import Feasible
from sfihilo.forward.tuning import select_hyperparameters
from sfihilo.history import FloatArray, generator
from sfihilo.inverse.features import FourierFeatures
from sfihilo.querying import Decision
from sfihilo.study.people.users import SimulatedUser, sample_user

# The last rounds before a measurement are told one by one, so that the fit starts warm.
_TOLD_SINGLY = 5
# Searches for the mode of the loaded history; each continues where the one before it ended.
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
    """The replies to `rounds` random policies."""
    policies = generator(user.seed, 0, "benchmark policies").uniform(size=(rounds, dimension))
    responses: list[Response] = []
    for index, policy in enumerate(policies):
        anchor = responses[-1].outcome if responses else None
        responses.append(user.respond(Query(index, policy, anchor)))
    return Told(policies, tuple(responses))


def state_after(settings: Settings, told: Told, comparisons: int, seed: int = 0) -> State:
    """A learner after `comparisons`, as a running session would hold it.

    Most of the history is loaded at once to save time; the last rounds are told one by one.
    """
    loaded = max(comparisons + 1 - _TOLD_SINGLY, 0)
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
    # Only the start of the search below.
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


def plain_features(state: State) -> model.Features:
    """The learner's own random features."""
    features = state.inverse.features
    if not isinstance(features, FourierFeatures):
        raise ValueError(f"expected a learner with Fourier features, got {features}")
    # The learner keeps the frequencies divided by the length scale.
    length_scale = state.settings.inverse.length_scale
    return model.Features(features.frequencies * length_scale, features.phases, length_scale)


def plain_constants(settings: Settings) -> model.Constants:
    """The learner's settings as the constants of the transcription."""
    return model.Constants(
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


@dataclass(frozen=True, eq=False)
class Bench:
    """A learner after t comparisons, and the possible next rounds that are timed."""

    state: State
    nexts: tuple[tuple[Query, Response], ...]

    @staticmethod
    def make(
        settings: Settings, user: SimulatedUser, told: Told, comparisons: int, repeats: int
    ) -> Bench:
        state = state_after(settings, told, comparisons)
        nexts = tuple(next_response(user, state, repeat) for repeat in range(repeats))
        return Bench(state, nexts)

    def told(self, repeat: int) -> State:
        """Only the first half of a round."""
        return tell(self.state, *self.nexts[repeat % len(self.nexts)])

    def learner(self, repeat: int) -> Decision:
        """tell + ask (`explain` computes the query of `ask`, and returns its scores too)."""
        return explain(self.told(repeat))

    def plain(self, repeat: int) -> Lookahead:
        """The same round by the plain transcription, its random draws included."""
        return self._plain(repeat, boundary_lookahead, self._constants)

    def to_the_end(self, repeat: int) -> Lookahead:
        """The same with a search for the mode that runs until it converges."""
        constants = self._constants.to_the_end()
        return self._plain(repeat, boundary_lookahead, constants)

    def tuned(self, repeat: int) -> Lookahead:
        """The same round by the tuned transcription."""
        return self._plain(repeat, tuned.boundary_lookahead, self._constants)

    @property
    def _constants(self) -> model.Constants:
        return plain_constants(self.state.settings)

    def _plain(self, repeat: int, rule: LookaheadRule, constants: model.Constants) -> Lookahead:
        query, response = self.nexts[repeat % len(self.nexts)]
        state = self.state
        # Only the arrays: neither of the learner's models is refitted here.
        after = replace(state, history=state.history.append(query, response))
        found, _ = whole_round(
            plain_data(after),
            (state.forward.hyper.length_scale, state.forward.hyper.ridge),
            plain_features(state),
            state.inverse.centre,
            plain_draws(after),
            constants,
            rule,
        )
        return found

    def actions(self, *names: str) -> dict[str, Action]:
        """By name, for `clock.in_turn`."""
        known: dict[str, Action] = {
            "tell": self.told,
            "round": self.learner,
            "plain": self.plain,
            "tuned": self.tuned,
        }
        return {name: known[name] for name in names}


@dataclass(frozen=True)
class Agreement:
    """The learner's choice, scored by the plain transcription."""

    same: bool
    loss: float  # share of the best score that the learner's choice gives away
    difference: float  # largest relative difference between utilities of the same candidates


def compare(decision: Decision, lookahead: Lookahead) -> Agreement:
    """Compares the choices by the scores of the plain transcription."""
    row = int(np.flatnonzero((decision.pool == decision.policy).all(axis=1))[0])
    best = float(lookahead.utilities.max())
    plain_score = dict(zip(lookahead.shortlist.tolist(), lookahead.utilities.tolist(), strict=True))
    ours = dict(zip(decision.shortlist.tolist(), decision.utilities.tolist(), strict=True))
    common = [abs(ours[key] - plain_score[key]) for key in ours if key in plain_score]
    if not common:
        raise ValueError("the two shortlists have nothing in common")
    # A choice outside of the plain shortlist counts with the learner's own score.
    score = plain_score[row] if row in plain_score else ours[row]
    return Agreement(row == lookahead.chosen, (best - score) / best, max(common) / best)


def whole_run(rounds: int, rule: str) -> dict[str, float]:
    """Ask and tell from the beginning, then recommend."""
    user = person()
    start = time.process_time()
    state = begin(Settings.paper(rule=rule), 0)
    for _ in range(rounds + 1):
        query = ask(state)
        state = tell(state, query, user.respond(query))
    looped = time.process_time() - start
    recommend(state)
    return {"comparisons": float(rounds), "seconds": looped, "peak_mb": peak_kilobytes() / 1024}


def peak_kilobytes() -> int:
    """Peak memory of this process; `ru_maxrss` would include the process that started it."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    [line] = [line for line in status.read_text().splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1])


if __name__ == "__main__":
    print(json.dumps(whole_run(int(sys.argv[1]), sys.argv[2])))
