"""The methods by name: how each is made for a person, and what it is called in the table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.peers.advice.evolution import EvolutionSeeker
from benchmarks.peers.advice.hyperparameters import PairwiseFit, PlainFit
from benchmarks.peers.advice.on_outcomes import OutcomesSeeker
from benchmarks.peers.advice.on_settings import LineSeeker, RandomSeeker, SettingsSeeker
from benchmarks.peers.advice.people import Person, unit
from benchmarks.peers.advice.sampler import SamplerSeeker
from sfihilo.learner import begin
from sfihilo.study.design.conditions import learner_settings
from sfihilo.study.design.panels import BEST, GLOBAL_PAIRS, RANDOM
from sfihilo.study.run.advice_gap import LearnerSeeker, Seeker, policy_dimension


@dataclass(frozen=True)
class Method:
    """A method of the table. peer: whether it is somebody else's. needs: a package beyond ours."""

    label: str
    make: Callable[[Person], Seeker]
    peer: bool = True
    needs: str | None = None


def _dimension(person: Person) -> int:
    return policy_dimension(person.user)


def _ours(rule: str) -> Callable[[Person], Seeker]:
    def make(person: Person) -> Seeker:
        settings = learner_settings(unit(person.shape, person.index, person.study_seed, rule))
        return LearnerSeeker(begin(settings, person.seed("learner")))

    return make


def _eubo_pairwise(person: Person) -> Seeker:
    return SettingsSeeker(_dimension(person), person.seed("peer"), PairwiseFit())


def _eubo_plain(person: Person) -> Seeker:
    return SettingsSeeker(_dimension(person), person.seed("peer"), PlainFit())


def _eubo_outcomes(person: Person) -> Seeker:
    noise = person.user.noise.measurement
    fit = PairwiseFit()
    return OutcomesSeeker(_dimension(person), person.seed("peer"), fit, measurement=noise)


def _eubo_outcomes_plain(person: Person) -> Seeker:
    noise = person.user.noise.measurement
    return OutcomesSeeker(_dimension(person), person.seed("peer"), PlainFit(), measurement=noise)


def _line(person: Person) -> Seeker:
    return LineSeeker(_dimension(person), person.seed("peer"), PairwiseFit())


def _line_plain(person: Person) -> Seeker:
    return LineSeeker(_dimension(person), person.seed("peer"), PlainFit())


def _sampler(person: Person) -> Seeker:
    return SamplerSeeker(_dimension(person), person.seed("peer"))


def _evolution(person: Person) -> Seeker:
    return EvolutionSeeker(person.user, _dimension(person), person.seed("peer"))


def _random_settings(person: Person) -> Seeker:
    return RandomSeeker(_dimension(person), person.seed("peer"), PlainFit())


METHODS: dict[str, Method] = {
    "best": Method("SFIHILO, goal `best`", _ours(BEST), peer=False),
    "understand": Method("SFIHILO, goal `understand`", _ours(GLOBAL_PAIRS), peer=False),
    "random": Method("SFIHILO's models, random questions", _ours(RANDOM), peer=False),
    "eubo": Method("SFIHILO's models, EUBO", _ours("eubo"), peer=False),
    "eubo_pairwise": Method("EUBO, PairwiseGP over settings", _eubo_pairwise, needs="botorch"),
    "eubo_plain": Method("EUBO, plain process over settings", _eubo_plain),
    "eubo_outcomes": Method(
        "EUBO, PairwiseGP over outcomes and a forward process", _eubo_outcomes, needs="botorch"
    ),
    "eubo_outcomes_plain": Method(
        "EUBO, plain process over outcomes and a forward process", _eubo_outcomes_plain
    ),
    "line": Method("EUBO-LineCoSpar (PairwiseGP over settings)", _line, needs="botorch"),
    "line_plain": Method("EUBO-LineCoSpar on a plain process", _line_plain),
    "optuna": Method("Optuna PreferentialGPSampler", _sampler, needs="optuna_dashboard"),
    "cmaes": Method("CMA-ES, told the noisy reward itself", _evolution, needs="cmaes"),
    "random_settings": Method("random settings, plain process over settings", _random_settings),
}
