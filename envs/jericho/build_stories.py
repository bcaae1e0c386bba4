"""`python -m evalharness.envs.jericho.build_stories`: compile every story that we ship, and write the quests of seed 0.

For maintainers, after a change of a story, of the quest generator or of its themes. A test fails until it is run.
"""

from __future__ import annotations

from evalharness.envs.frozen import FROZEN_SEED
from evalharness.envs.jericho.compiler import STORIES, compile_story
from evalharness.envs.jericho.generator import quest_story
from evalharness.envs.jericho.quest_source import quest_source
from evalharness.envs.jericho.quests import quests_of


def main() -> None:
    for number, quest in enumerate(quests_of(FROZEN_SEED)):
        source = (STORIES / quest_story(number)).with_suffix(".inf")
        source.write_text(quest_source(quest), encoding="ascii")
    for source in sorted(STORIES.glob("*.inf")):
        story = compile_story(source.read_text(encoding="ascii"))
        source.with_suffix(".z5").write_bytes(story)
        print(f"{source.stem}: {len(story)} bytes")


if __name__ == "__main__":
    main()
