"""One whole round, by the learner and by the plain transcription, from the same state and draws."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks import plain_query, plain_tuned, scenario
from benchmarks.clock import Action
from benchmarks.plain import Constants
from benchmarks.plain_query import Lookahead, Looked, whole_round
from sfihilo import Query, Response, Settings, State, explain, tell
from sfihilo.querying import Decision
from sfihilo.study.people.users import SimulatedUser


@dataclass(frozen=True, eq=False)
class Bench:
    """A learner after t comparisons, and the next round of it that is timed."""

    state: State
    nexts: tuple[tuple[Query, Response], ...]

    @staticmethod
    def make(
        settings: Settings, user: SimulatedUser, told: scenario.Told, comparisons: int, repeats: int
    ) -> Bench:
        state = scenario.state_after(settings, told, comparisons)
        nexts = tuple(scenario.next_response(user, state, repeat) for repeat in range(repeats))
        return Bench(state, nexts)

    def told(self, repeat: int) -> State:
        """Only the first half of a round."""
        return tell(self.state, *self.nexts[repeat % len(self.nexts)])

    def learner(self, repeat: int) -> Decision:
        """tell + ask (`look` is `ask`, and says what it looked at)."""
        return explain(self.told(repeat))

    def plain(self, repeat: int) -> Looked:
        """The same round by the plain transcription, its random draws included."""
        return self._plain(repeat, plain_query.boundary_lookahead, self._constants)

    def to_the_end(self, repeat: int) -> Looked:
        """The same from the mode itself, however long the search for it takes."""
        constants = self._constants.to_the_end()
        return self._plain(repeat, plain_query.boundary_lookahead, constants)

    def tuned(self, repeat: int) -> Looked:
        """The same by its tuned form."""
        return self._plain(repeat, plain_tuned.boundary_lookahead, self._constants)

    @property
    def _constants(self) -> Constants:
        return scenario.plain_constants(self.state.settings)

    def _plain(self, repeat: int, lookahead: Lookahead, constants: Constants) -> Looked:
        query, response = self.nexts[repeat % len(self.nexts)]
        state = self.state
        # Only the arrays: neither of the learner's models is refitted here.
        after = State(
            state.settings,
            state.seed,
            state.history.append(query, response),
            state.forward,
            state.inverse,
            state.decay,
            state.factored,
        )
        looked, _ = whole_round(
            scenario.plain_data(after),
            (state.forward.hyper.length_scale, state.forward.hyper.ridge),
            scenario.plain_features(state),
            state.inverse.centre,
            scenario.plain_draws(after),
            constants,
            lookahead,
        )
        return looked

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
    """How the learner's choice stands in the plain transcription's eyes."""

    same: bool
    loss: float  # share of the best score that the learner's choice gives away
    difference: float  # largest relative difference between utilities of the same candidates


def compare(selection: Decision, looked: Looked) -> Agreement:
    """The plain scores of both choices."""
    row = int(np.flatnonzero((selection.pool == selection.policy).all(axis=1))[0])
    best = float(looked.utilities.max())
    plain_score = dict(zip(looked.shortlist.tolist(), looked.utilities.tolist(), strict=True))
    ours = dict(zip(selection.shortlist.tolist(), selection.utilities.tolist(), strict=True))
    common = [abs(ours[key] - plain_score[key]) for key in ours if key in plain_score]
    if not common:
        raise ValueError("the two shortlists have nothing in common")
    # A choice outside of the plain shortlist counts with the learner's own score.
    score = plain_score[row] if row in plain_score else ours[row]
    return Agreement(row == looked.chosen, (best - score) / best, max(common) / best)
