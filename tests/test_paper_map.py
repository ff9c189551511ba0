from pathlib import Path

import pytest

from tools import paper_map

SECTIONS = paper_map.read_sections()
LABELS = [label for section in SECTIONS for label in section.labels]
TAGS = paper_map.read_tags()
HOMES = paper_map.homes(TAGS)


def test_the_paper_has_72_labelled_equations() -> None:
    assert len(LABELS) == len(set(LABELS)) == 72


def test_every_tag_is_an_equation_of_the_paper() -> None:
    unknown = [f"{tag.path.name}:{tag.line} {tag.label}" for tag in TAGS if tag.label not in LABELS]
    assert unknown == []


@pytest.mark.parametrize("label", LABELS)
def test_every_equation_has_one_home(label: str) -> None:
    places = HOMES.get(label, ())
    if label in paper_map.NO_CODE:
        assert places == (), f"{label} is tagged: take it out of NO_CODE"
    else:
        assert len(places) == 1, f"{label} lives in {places or 'no function'}"
        assert not places[0].endswith(":"), f"{label} is tagged outside of any function"


def test_exceptions_are_equations_of_the_paper_and_point_at_code() -> None:
    assert set(paper_map.NO_CODE) <= set(LABELS)
    for reason in paper_map.NO_CODE.values():
        assert set(paper_map.TAG.findall(reason)) <= set(HOMES), reason


def test_the_page_is_up_to_date() -> None:
    expected = paper_map.page(SECTIONS, HOMES)
    assert paper_map.PAGE.read_text(encoding="utf-8") == expected, "run `make paper-map`"


def test_paper_map_finds_the_home_of_each_tag(tmp_path: Path) -> None:
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "noun.py").write_text(
        "SCALE = 2.0  # eq:constant\n"
        "\n"
        "# eq:above\n"
        "@decorator\n"
        "def outer():\n"
        "    def inner():\n"
        "        return 1  # eq:one, eq:two\n"
        "    return inner\n"
        "\n"
        "class Belief:\n"
        "    def mean(self):\n"
        "        # eq:one\n"
        "        return 'eq:not_a_comment'\n",
        encoding="utf-8",
    )
    found = paper_map.homes(paper_map.read_tags(tmp_path))
    assert found == {
        "eq:constant": ("part.noun:SCALE",),
        "eq:above": ("part.noun:outer",),
        "eq:one": ("part.noun:Belief.mean", "part.noun:outer"),
        "eq:two": ("part.noun:outer",),
    }
