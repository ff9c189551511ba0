"""D_f, D_r, the anchor and the sign of a label."""

import contextlib

import numpy as np
import pytest

from sfihilo.history import (
    CHOICES,
    History,
    Query,
    Response,
    generator,
    known_choice,
    unit_vector,
)


def told(*responses: Response) -> History:
    """Rounds whose policy is the round's number divided by ten."""
    history = History.empty(2, 1)
    for index, response in enumerate(responses):
        query = Query(index, np.full(2, index / 10), history.anchor)
        history = history.append(query, response)
    return history


def outcome(value: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array([value])


def test_signs_of_the_labels() -> None:
    history = told(
        Response(outcome(0.1), None),
        Response(outcome(0.2), "new"),
        Response(outcome(0.3), "previous"),
        Response(outcome(0.4), "same"),
    )
    pairs = history.preference_data()
    # The paper's pair is (anchor, new): +1 says that the anchor was preferred.
    assert pairs.labels.tolist() == [-1.0, 1.0, 0.0]
    assert pairs.anchors.ravel().tolist() == [0.1, 0.2, 0.3]
    assert pairs.outcomes.ravel().tolist() == [0.2, 0.3, 0.4]


def test_missing_is_kept_as_missing() -> None:
    history = told(
        Response(outcome(0.1), None),
        Response(None, "new"),  # an answer about nothing measured is no comparison
        Response(outcome(0.3), None),
        Response(outcome(0.4), "previous"),
    )
    assert len(history) == 4
    assert history.choices == (None, "new", None, "previous")
    assert np.isnan(history.outcomes[1]).all()
    rounds, policies, outcomes = history.forward_data()
    assert rounds.tolist() == [0, 2, 3]
    assert policies[:, 0].tolist() == [0.0, 0.2, 0.3]
    assert outcomes.ravel().tolist() == [0.1, 0.3, 0.4]
    pairs = history.preference_data()
    assert pairs.anchors.ravel().tolist() == [0.3]
    # Round 2 was still compared with round 0, the last one measured before it.
    assert history.anchors[2].tolist() == [0.1]


def test_anchor_is_the_last_measured_outcome() -> None:
    assert told().anchor is None
    assert told(Response(None, None)).anchor is None
    history = told(Response(outcome(0.1), None), Response(None, None))
    assert history.anchor is not None
    assert history.anchor.tolist() == [0.1]
    assert history.previous_policy is not None
    assert history.previous_policy.tolist() == [0.1, 0.1]  # the body did it, measured or not


def test_answer_without_an_anchor_is_no_comparison() -> None:
    history = told(Response(outcome(0.1), "new"))
    assert len(history.preference_data().labels) == 0
    assert history.choices == ("new",)


def test_append_leaves_the_old_history() -> None:
    before = told(Response(outcome(0.1), None))
    before.append(Query(1, np.zeros(2), before.anchor), Response(outcome(0.2), "new"))
    assert len(before) == 1
    assert before.outcomes.shape == (1, 1)


def test_changing_a_handed_out_anchor_leaves_the_history() -> None:
    history = told(Response(outcome(0.1), None))
    anchor = history.anchor
    assert anchor is not None
    with contextlib.suppress(ValueError):  # read-only is as good as a copy
        anchor[0] = 0.9
    assert history.outcomes[0, 0] == 0.1


def test_streams_are_repeatable_and_their_own() -> None:
    draws = {
        key: generator(*key).random(4).tobytes()
        for key in [(0, 0, "pool"), (1, 0, "pool"), (0, 1, "pool"), (0, 0, "guard")]
    }
    assert len(set(draws.values())) == 4
    assert all(generator(*key).random(4).tobytes() == value for key, value in draws.items())


@pytest.mark.parametrize(
    "values",
    [
        [0.5],
        [0.5, 0.5, 0.5],
        [[0.5, 0.5]],
        0.5,
        [np.nan, 0.5],
        [np.inf, 0.5],
        [-1e-9, 0.5],
        [0.5, 1 + 1e-9],
        ["a", "b"],
        [None, 0.5],
        [[0.1], [0.1, 0.2]],
        None,
        [0.5 + 1j, 0.5],
    ],
)
def test_unit_vector_refuses_wrong_shapes_and_values(values: object) -> None:
    with pytest.raises(ValueError, match=r"policy: expected"):
        unit_vector(values, 2, "policy")


def test_vectors_are_copied() -> None:
    mine = np.array([0.0, 1.0])
    checked = unit_vector(mine, 2, "policy")
    mine[0] = 0.7
    assert checked.tolist() == [0.0, 1.0]


@pytest.mark.parametrize("choice", ["NEW", "", "anchor", 1, -1, 0, True, ["new"], {"new"}])
def test_unknown_choices(choice: object) -> None:
    with pytest.raises(ValueError, match=r"new, previous, same or None, got"):
        known_choice(choice)


def test_known_choices() -> None:
    assert [known_choice(choice) for choice in (*CHOICES, None)] == [
        "new",
        "previous",
        "same",
        None,
    ]
