"""HotpotQA's world: search, lookup, finish, the official score, other wordings, hostile input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalharness.envs import specs
from evalharness.envs.base import InvalidTaskError, Task
from evalharness.paper.hotpotqa.actions import INVALID, parse
from evalharness.paper.hotpotqa.adapter import HotpotQAEnv
from evalharness.paper.hotpotqa.generator import generate
from evalharness.paper.hotpotqa.pages import Page, PageStore, PageStoreError, split_words
from evalharness.paper.hotpotqa.score import exact_match, f1
from evalharness.paper.hotpotqa.store_writer import write_small
from evalharness.protocol.perturb import PlayedSurface, make_surface
from evalharness.protocol.prompt import load_prompt

SPEC = specs()["hotpotqa"]
LONG = Page(
    "Milhouse", tuple(f"Sentence {n} about Milhouse{' and Nixon' * (n % 3 == 0)}." for n in range(1, 9))
)
PAGES = [
    LONG,
    Page("milhouse", ("A page in small letters.",)),
    Page("Richard Nixon", ("He was a president.", " He was born in California.")),
    Page("Nixon (film)", ("A film.",)),
    Page("Nixon in China", ("An opera.",)),
    Page("AC/DC [band]", ("A band.",)),
    Page("../../etc/passwd", ("No file.",)),
    Page("Nul\0byte", ("It has a NUL.",)),
    Page("Čapek & Söhne", ("Accents.",)),
    Page("Empty page", ()),
]
REDIRECTS = [("Tricky Dick", "Richard Nixon"), ("milhouse", "Richard Nixon"), ("Nowhere", "No such page")]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> PageStore:
    path = tmp_path_factory.mktemp("store") / "pages.sqlite"
    write_small(path, PAGES, REDIRECTS, "made for tests")
    return PageStore(path)


def playing(store: PageStore, tmp_path: Path, answer: str = "California") -> tuple[HotpotQAEnv, Task]:
    """An environment at the start of a question over `store`, as the official suite has it."""
    folder = tmp_path / "hotpotqa"
    folder.mkdir(exist_ok=True)
    if not (folder / "pages.sqlite").exists():
        (folder / "pages.sqlite").symlink_to(store.path)
    task = Task(
        id="hotpotqa/hotpotqa/0000", family="hotpotqa", suite="hotpotqa", index=0, goal="Where was Nixon born?",
        difficulty="hard", kind="bridge", subgoals=("open the page Richard Nixon", "open the page Milhouse"),
        payload={"answer": answer, "supporting": ["Richard Nixon", "Milhouse"], "pages_sha256": store.sha256},
    )  # fmt: skip
    environment = HotpotQAEnv(data=tmp_path)
    environment.reset(options={"task": task})
    return environment, task


# --- the official score, worked by hand --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "gold", "exact", "score"),
    [
        ("Chief of Protocol", "Chief of Protocol", True, 1.0),
        ("the  chief of protocol.", "Chief of Protocol", True, 1.0),
        ("U.S. president", "US President", True, 1.0),
        ("3,677", "3,677 playing", False, 2 / 3),  # precision 1, recall 1/2
        ("Greenwich Village", "Greenwich Village, New York City", False, 4 / 7),  # 1 and 2/5
        ("New New York", "New York", False, 0.8),  # a word counts as often as it is there: 2/3 and 1
        ("York York", "New York", False, 0.5),
        ("Paris", "London", False, 0.0),
        ("", "London", False, 0.0),
        ("the", "London", False, 0.0),
        ("yes", "Yes", True, 1.0),
        ("yes it is", "yes", False, 0.0),  # no credit for a part of a closed answer
        ("yes", "yes it is", False, 0.0),
        ("no", "yes", False, 0.0),
        ("noanswer", "no answer", False, 0.0),
        ("noanswer", "noanswer", True, 1.0),
        (
            "an a the",
            "the an",
            True,
            0.0,
        ),  # both are nothing once articles are gone: equal, but no word in common
        ("theatre", "the atre", False, 0.0),  # articles go as whole words only
    ],
)
def test_exact_match_and_f1(answer: str, gold: str, exact: bool, score: float) -> None:
    assert exact_match(answer, gold) is exact
    assert f1(answer, gold) == pytest.approx(score)


# --- what the actions do -----------------------------------------------------------------------------------------


def test_a_search_shows_the_first_five_sentences(store: PageStore, tmp_path: Path) -> None:
    environment, _ = playing(store, tmp_path)
    shown = environment.step("search[Milhouse]")[0]
    assert shown.startswith("Sentence 1 about Milhouse. Sentence 2")
    assert "Sentence 5" in shown
    assert "Sentence 6" not in shown
    assert environment.step("search[Richard Nixon]")[0] == "He was a president. He was born in California."
    assert environment.step("search[Empty page]")[0] == "(an empty page)"


def test_titles_are_found_exactly_then_without_case_then_through_redirects(store: PageStore) -> None:
    def title(text: str) -> str | None:
        page = store.find(text)
        return page and page.title

    assert title("Milhouse") == "Milhouse"
    assert (
        title("milhouse") == "milhouse"
    )  # the exact title, not the other one, nor the redirect of that name
    assert title("MILHOUSE") == "Milhouse"
    assert title("richard nixon") == "Richard Nixon"
    assert title(" Tricky Dick ") == title("tricky dick") == "Richard Nixon"
    assert title("Nowhere") is None
    assert title("Nixon") is None


def test_a_search_without_a_page_names_similar_titles_and_leaves_the_page_open(
    store: PageStore, tmp_path: Path
) -> None:
    environment, _ = playing(store, tmp_path)
    environment.step("search[Milhouse]")
    shown, _, ended, _, info = environment.step("search[Nixon the man]")
    assert shown.startswith("Could not find Nixon the man. Similar: [")
    assert all(repr(title) in shown for title in ("Richard Nixon", "Nixon (film)", "Nixon in China"))
    assert info["valid"]
    assert not ended
    assert environment.step("search[zzz]")[0] == "Could not find zzz. Similar: []."
    assert environment.step("lookup[Sentence 7]")[0].startswith("(Result 1 / 1) Sentence 7")
    assert len(store.similar("nixon china film band page")) == 5


def test_a_lookup_goes_on_and_another_keyword_or_a_search_starts_it_anew(
    store: PageStore, tmp_path: Path
) -> None:
    environment, _ = playing(store, tmp_path)

    def say(action: str) -> str:
        return environment.step(action)[0]

    assert not environment.step("lookup[Nixon]")[4]["valid"]  # no page is open
    say("search[Milhouse]")
    assert say("lookup[NIXON]") == "(Result 1 / 2) Sentence 3 about Milhouse and Nixon."
    assert say("lookup[NIXON]") == "(Result 2 / 2) Sentence 6 about Milhouse and Nixon."
    assert say("lookup[NIXON]") == say("lookup[NIXON]") == "No more results."
    assert say("lookup[Sentence 8]").startswith("(Result 1 / 1)")
    assert say("lookup[NIXON]").startswith("(Result 1 / 2)")
    say("search[Milhouse]")
    assert say("lookup[NIXON]").startswith("(Result 1 / 2)")


def test_finish_ends_and_scores(store: PageStore, tmp_path: Path) -> None:
    environment, task = playing(store, tmp_path)
    info = environment.step("search[Tricky Dick]")[4]
    assert info["subgoals_completed"] == (0,)
    assert info["figures"] == {"supporting_facts": 0.5, "joint": 0.0}
    assert environment.step("search[Richard Nixon]")[4]["subgoals_completed"] == ()
    _, reward, ended, _, info = environment.step("finish[in California]")
    assert (reward, ended) == (pytest.approx(2 / 3), True)
    assert (info["success"], info["progress"]) == (False, pytest.approx(2 / 3))
    environment.reset(options={"task": task})
    environment.step("search[Richard Nixon]")
    environment.step("search[Milhouse]")
    info = environment.step("finish[the California]")[4]
    assert info["success"]
    assert info["solved"]
    assert info["figures"] == {"supporting_facts": 1.0, "joint": 1.0}


@pytest.mark.parametrize(
    "action",
    ["", "look", "search", "search[]", "lookup[ ]", "finish[", "Search Nixon", "buy[it]", "search(x)"],
)
def test_anything_else_is_answered_with_the_three_forms(
    action: str, store: PageStore, tmp_path: Path
) -> None:
    environment, _ = playing(store, tmp_path)
    shown, reward, ended, _, info = environment.step(action)
    assert shown == INVALID
    assert INVALID == "Invalid action: you can say search[entity], lookup[keyword], finish[answer]"
    assert (reward, ended, info["valid"]) == (0.0, False, False)


def test_an_action_may_be_careless_about_case_blanks_and_a_period() -> None:
    assert parse(" Search[ Nixon in China ]. ") == ("search", "Nixon in China")
    assert parse("search[AC/DC [band]]") == ("search", "AC/DC [band]")
    assert parse("FINISH[a\nb]") == ("finish", "a\nb")


def test_valid_actions_are_sorted_and_understood(store: PageStore, tmp_path: Path) -> None:
    environment, _ = playing(store, tmp_path)
    for action in (None, "search[Milhouse]", "search[zzz]"):
        if action:
            environment.step(action)
        offered = environment.valid_actions()
        assert offered == sorted(set(offered))
        assert all(parse(each) for each in offered)
        assert "finish[yes]" in offered
    assert "lookup[born]" in offered


# --- hostile input -----------------------------------------------------------------------------------------------

QUERY_SYNTAX = st.lists(
    st.one_of(
        st.sampled_from(
            ['"', "'", "*", "^", "(", ")", "{", "}", ":", "-", "+", "NEAR", "NEAR(a b, 2)", "AND", "OR", "NOT",
             "words:", "titles", "rowid", "nixon", "film", "[", "]", "\0", "\ud800", "%", ";--", "é", "İ", "ß"]
        ),
        st.text(max_size=8),
    ),
    max_size=12,
).map(" ".join)  # fmt: skip


@settings(deadline=None)
@given(text=QUERY_SYNTAX)
def test_query_syntax_in_a_search_stays_text(store: PageStore, text: str) -> None:
    """It finds what its words find, in any order of punctuation, and raises nothing."""
    store.find(text)
    found = store.similar(text)
    assert len(found) <= 5
    assert found == store.similar(" ".join(split_words(text.encode("utf-8", "replace").decode())))
    for title in found:
        assert set(split_words(title)) & set(split_words(text))


@pytest.mark.parametrize("title", [page.title for page in PAGES])
def test_hostile_titles_are_found_as_they_are(store: PageStore, title: str) -> None:
    page = store.find(title)
    assert page is not None
    assert page.title == title


@pytest.mark.parametrize("text", ["x" * 2**20, "nixon " * 200_000, "\ud800", "\0", "'" * 10_000])
def test_huge_and_broken_searches_are_answered_briefly(store: PageStore, tmp_path: Path, text: str) -> None:
    environment, _ = playing(store, tmp_path)
    shown = environment.step(f"search[{text}]")[0]
    assert shown.startswith("Could not find ")
    assert len(shown) < 2_000
    assert environment.step(f"lookup[{text}]")[0] == "No more results."
    assert environment.step(f"finish[{text}]")[2]


def test_the_store_cannot_be_written(store: PageStore) -> None:
    with pytest.raises(PageStoreError, match="readonly"):
        store._rows("DELETE FROM pages", ())


def test_another_store_than_the_task_was_made_with_is_refused(store: PageStore, tmp_path: Path) -> None:
    environment, task = playing(store, tmp_path)
    other = Task.from_json(
        json.loads(json.dumps({**task.to_json(), "payload": {**task.payload, "pages_sha256": "0" * 64}}))
    )
    with pytest.raises(InvalidTaskError, match="page store"):
        environment.reset(options={"task": other})


# --- wordings ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(SPEC.actions.wording.perturbations))
def test_a_perturbed_episode_is_the_same_episode(name: str, store: PageStore, tmp_path: Path) -> None:
    surface = make_surface(SPEC, name)
    environment, task = playing(store, tmp_path)
    said = ["search[Nixon in Ohio]", "search[AC/DC [band]]", "lookup[a b]", "finish[New York (state)]"]
    for action in said:
        assert surface.to_world(surface.from_world(action)) == action
        environment.step(surface.to_world(surface.from_world(action)))
    if surface.changed:
        environment.reset(options={"task": task})
        assert environment.step(surface.to_world("search[Milhouse]"))[0] == INVALID
    listed = surface.observation(INVALID)
    assert all(
        surface.perturbed.templates[a].replace("{", "").replace("}", "") in listed
        for a in SPEC.actions.templates
    )


def test_the_worked_example_is_what_the_world_of_its_seed_answers() -> None:
    prompt = load_prompt(SPEC)
    assert prompt.example is not None
    [task] = [task for task in generate(1000) if task.goal == prompt.example.goal]
    environment = SPEC.make(None)
    observation, info = environment.reset(options={"task": task})
    assert observation == prompt.example.observation
    for step in prompt.example.steps:
        observation, _, _, _, info = environment.step(step.action)
        assert observation == step.observation
    assert info["success"]


def test_a_place_is_the_page_that_was_found() -> None:
    assert SPEC.place is not None
    assert SPEC.place("search[morndale]", "Morndale is a town.") == "morndale"
    assert SPEC.place("search[morn]", "Could not find morn. Similar: [].") is None
    assert SPEC.place("lookup[river]", "(Result 1 / 1) It lies on the river Lulo.") is None
    assert SPEC.place("", "Search for a page to begin.") is None


@pytest.mark.parametrize("turns", [7, 12])
def test_the_prompt_says_the_turns_that_the_run_gives(turns: int) -> None:
    prompt, surface = load_prompt(SPEC), PlayedSurface(SPEC).perturbed
    assert f"You have {turns} turns, the answer" in " ".join(prompt.instruction_text(surface, turns).split())


def test_common_words_that_no_title_holds_together_still_have_similar_titles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evalharness.paper.hotpotqa.pages._MOST_MATCHES", 2)
    path = tmp_path / "pages.sqlite"
    titles = [*(f"The {n}" for n in range(4)), *(f"Of {n}" for n in range(3))]
    write_small(path, [Page(title, ("x",)) for title in titles], [], "made for tests")
    assert PageStore(path).similar("the of") == ["Of 0", "Of 1", "Of 2"]
