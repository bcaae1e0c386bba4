"""The real packages, each in an environment of its own, run the lines of their page in the documentation."""

from __future__ import annotations

import ast
import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import throwaway
from chat_server import ChatServer, streamed
from command_line import command, surroundings
from env_server import COMPASS, EnvServer, serving

from evalharness.envs.base import EnvSpec
from evalharness.models.base import Player, Reply, RequestForm
from evalharness.play.loop import play_episode
from evalharness.play.workers.process import RemoteEnvironment, WorkerProcess
from evalharness.protocol.perturb import PlayedSurface
from evalharness.protocol.prompt import Message, load_prompt
from evalharness.training.tune.install import TuneInstall
from tests.play.test_scheduler import compass

__all__ = ["compass"]

ROOT = Path(__file__).parents[3]
PAGES = ROOT / "docs" / "trainers"
OPENENV_VALIDATION = Path(__file__).with_name("openenv_validation.py")
PLUGIN = ROOT / "evalharness" / "rl" / "clients" / "plugin"
"""Its module is a top-level one in the wheel."""
MAX_TURNS = 2
pytestmark = pytest.mark.slow(300)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EnvServer]:
    around = surroundings(tmp_path_factory.mktemp("env"))
    with serving(around, *COMPASS, "--max-turns", MAX_TURNS) as found:
        yield found


def lines_of(page: str, block: int = 0, **constants: str) -> str:
    """A block of Python of a page, its constants set to these values."""
    text = (PAGES / f"{page}.md").read_text()
    code = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)[block]
    for name, value in constants.items():
        code, count = re.subn(rf"^{name} = .*$", lambda _, n=name, v=value: f"{n} = {v!r}", code, flags=re.M)
        assert count == 1, name
    return str(code)


def carry_out(python: Path, code: str, folder: Path, timeout: float = 300) -> list[str]:
    """What it prints, a line each. The checkout is on its path as the wheel has it, none of our dependencies is."""
    script = folder / "script.py"
    script.write_text(code)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # verifiers looks for uv
    environment = {
        **os.environ,
        "PYTHONPATH": f"{ROOT}{os.pathsep}{PLUGIN}",
        "PATH": path,
        "KEY": "x",
        "UV_SYSTEM_CERTS": "1",
    }
    done = subprocess.run(
        [python, script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def openenv_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return throwaway.make(tmp_path_factory.mktemp("openenv") / "venv", ["openenv==0.10.0"])


def test_openenv_plays_and_its_validator_passes(
    server: EnvServer, openenv_python: Path, tmp_path: Path
) -> None:
    said = carry_out(openenv_python, lines_of("openenv", URL=server.url), tmp_path)
    assert said == [
        "Goal: face north",
        "compass/open-0/000 turn_limit reward 0.0, progress 0.0",
        "Goal: face east",
        "compass/open-0/001 turn_limit reward 0.0, progress 0.0",
    ]
    done = subprocess.run(
        [openenv_python.with_name("openenv"), "validate", "--url", server.url],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


WITH_CODE = (
    "manifest",
    "startup",
    "network_policy",
    "observation_schema",
    "reward_well_formed",
    "state_contract",
)


@pytest.mark.skipif(
    subprocess.run(["unshare", "--net", "true"], capture_output=True, check=False).returncode != 0,
    reason="no right to make a network namespace",
)
def test_openenvs_validation_of_a_package_passes(openenv_python: Path, tmp_path: Path) -> None:
    """The package of the page, our server its subject; every other check says that this release has no code for it."""
    page = (PAGES / "openenv.md").read_text()
    (tmp_path / "package" / "validation").mkdir(parents=True)
    for kind, name in (("yaml", "openenv.yaml"), ("json", "validation/runtime.json")):
        (block,) = re.findall(rf"^```{kind}\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
        (tmp_path / "package" / name).write_text(block)
    (options,) = re.findall(r"`evalharness (env serve .*?)`", page)
    done = subprocess.run(
        [openenv_python, OPENENV_VALIDATION, tmp_path / "package", *command(*options.split())],
        env=surroundings(tmp_path),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    results = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    passed = {check.partition(".")[2] for check, status, _ in results if status == "pass"}
    assert passed == set(WITH_CODE)
    others = {tuple(why) for _, status, why in results if status != "pass"}
    assert others == {("grader not implemented in this build",)}


_GROUPS = """
import asyncio
import sys
from evalharness.rl.clients import session
from evalharness.rl.clients.session import AsyncSession, Session, SessionError, _rounds

url, right = sys.argv[1], {"text": "Action: turn right"}
with Session(url) as group, Session(url) as alone:
    opened = group.reset_many([{"index": 1}, {"index": 0}])
    print(opened == [alone.reset(index=1), alone.reset(index=0)])
    print([turn.reward for turn in group.step_many([right, right])])
    (over,) = group.step_many([right], places=[0])
    print(isinstance(over, SessionError), over)
    print([state["step_count"] for state in group.state_many()])
print([_rounds({"type": "state"}), *(_rounds({"data": {"episodes": [{}] * n}}) for n in (64, 65, 2048))])


async def beyond_one_message():
    async with AsyncSession(url) as group:
        await group.reset_many([{"index": 1}] * 6)
        turns = await group.step_many([{"text": "a" * 300_000 + chr(10) + right["text"]}] * 6)
        print([turn.reward for turn in turns])


asyncio.run(beyond_one_message())
holder = Session(url)
holder.reset_many([{}] * 200)
waits = []


async def _meanwhile(seconds):
    waits.append(seconds)
    await holder._own.__aexit__()


session.asyncio.sleep = _meanwhile
with Session(url) as late:
    print(len(late.reset_many([{}] * 200)), len(waits) > 0)
    try:
        late.reset_many([{}] * 300)
    except SessionError as error:
        print(error)
"""


def test_our_client_plays_groups(server: EnvServer, tmp_path: Path) -> None:
    python = throwaway.make(tmp_path / "venv", ["websockets"])
    said = carry_out(python, f"import sys\nsys.argv[1:] = {[server.url]!r}\n{_GROUPS}", tmp_path)
    assert said == [
        "True", "[1.0, 0.0]", "True no episode is open: reset first (EXECUTION_ERROR)", "[1, 1]",
        "[1, 1, 2, 32]", "[1.0, 1.0, 1.0, 1.0, 1.0, 1.0]",
        "200 True", "300 episodes, but 256 sessions (--sessions) (VALIDATION_ERROR)",
    ]  # fmt: skip


async def test_verifiers_plays_the_taskset_with_our_prompt_and_reward(
    server: EnvServer, tmp_path: Path
) -> None:
    """The module is found by its name, and the model is a chat server that says what it was asked."""
    python = throwaway.make(tmp_path / "venv", ["verifiers==0.4.0", "websockets"])
    said_by_model = streamed("Thought: that way\nAction: turn right")
    async with ChatServer(choose_fault=lambda _: said_by_model).running() as model:
        code = lines_of("verifiers", URL=server.url).replace("http://127.0.0.1:8080/v1", model.url)
        said = await asyncio.to_thread(carry_out, python, code, tmp_path)
    names = [line.split()[0] for line in said]
    assert names == ["compass/open-1/000", "compass/open-1/001"]
    # North is two turns away, east is one.
    assert ["True 1.0" in line and "'success': 1.0" in line for line in said] == [True, True]
    assert [re.search(r"'step_count': ([\d.]+)", line)[1] for line in said] == ["2.0", "1.0"]  # type: ignore[index]
    first = model.requests[0]["messages"]
    assert [message["role"] for message in first] == ["system", "user"]
    assert first[0]["content"] == "You are a navigator."
    assert first[1]["content"].endswith("Goal: face north\nObservation: You face south.")
    second = model.requests[1]["messages"]
    assert second[2:] == [
        {"role": "assistant", "content": "Thought: that way\nAction: turn right"},
        {"role": "user", "content": "Observation: You face west."},
    ]


def test_skyrl_plays_an_episode(server: EnvServer, tmp_path: Path) -> None:
    python = throwaway.make(tmp_path / "venv", ["skyrl-gym==0.4.0", "websockets"])
    code = lines_of("skyrl", URL=server.url).replace("check valid actions", "turn right")
    said = carry_out(python, code, tmp_path)
    assert said == [
        "compass/open-0/001 ['system', 'user']",
        "1.0 {'success': 1.0, 'progress': 1.0}",
    ]


_TEACH = """
import sys
import torch
from evalharness.rl.clients.session import Session
from transformers import AutoModelForCausalLM, AutoTokenizer

# A random checkpoint says nothing that a world understands: it learns to turn, and still says other things, too.
url, folder = sys.argv[1:]
tokenizer = AutoTokenizer.from_pretrained(folder)
model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
with Session(url) as session:
    openings = [session.reset(index=index).messages for index in range(4)]
rows = []
for opening in openings:
    start = tokenizer.apply_chat_template(opening, tokenize=False, add_generation_prompt=True)
    for way in ("right", "left"):
        rows.append((start, "Action: turn " + way + tokenizer.eos_token))
encoded = [(tokenizer(a)["input_ids"], tokenizer(b)["input_ids"]) for a, b in rows]
width = max(len(a) + len(b) for a, b in encoded)
ids = torch.tensor([[tokenizer.pad_token_id] * (width - len(a) - len(b)) + a + b for a, b in encoded])
labels = torch.tensor([[-100] * (width - len(b)) + b for a, b in encoded])
mask = torch.tensor([[0] * (width - len(a) - len(b)) + [1] * (len(a) + len(b)) for a, b in encoded])
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
torch.manual_seed(0)
for step in range(60):
    loss = model(input_ids=ids, attention_mask=mask, labels=labels).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if loss < 0.25:
        break
model.save_pretrained(folder)
print(step, float(loss))
"""

_WATCH = """
import atexit
import json
from evalharness.rl.clients import session as _session

_played = []


class Watched(_session.Session):
    def reset(self, **which):
        self.log = {"task_id": which["task_id"], "said": [], "reward": 0.0}
        _played.append(self.log)
        return super().reset(**which)

    def step(self, text, **more):
        turn = super().step(text, **more)
        self.log["said"].append([text, more.get("finish_reason")])
        self.log["reward"] += turn.reward
        return turn

    def reset_many(self, episodes, places=None):
        self.logs = [{"task_id": each["task_id"], "said": [], "reward": 0.0} for each in episodes]
        _played.extend(self.logs)
        return super().reset_many(episodes, places)

    def step_many(self, replies, places=None):
        turns = super().step_many(replies, places)
        for place, reply, turn in zip(places, replies, turns):
            self.logs[place]["said"].append([reply["text"], reply["finish_reason"]])
            self.logs[place]["reward"] += turn.reward
        return turns


_session.Session = Watched
atexit.register(lambda: json.dump(_played, open("played.json", "w")))
"""

_KEEP = """
import evalharness.rl.clients.trl as _trl

_plain = _trl.rollout


def rollout(*args, **more):
    play = _plain(*args, **more)

    def kept(prompts, trainer):
        out = play(prompts, trainer)
        decode = trainer.processing_class.decode
        with open("rollouts.jsonl", "a") as file:
            for i, prompt in enumerate(prompts):
                sampled, ids, mask = [], out["completion_ids"][i], out["env_mask"][i]
                runs, last = [], None
                for token, own in zip(ids, mask, strict=True):
                    if own != last:
                        runs.append([own, []])
                    runs[-1][1].append(token)
                    last = own
                runs = [[own, decode(tokens), decode(tokens, skip_special_tokens=True)] for own, tokens in runs]
                row = {"prompt": prompt, "opening": decode(out["prompt_ids"][i]), "runs": runs}
                file.write(json.dumps({**row, "reward": out["episode_reward"][i]}) + "\\n")
        return out

    return kept


_trl.rollout = rollout
"""


async def test_trl_trains_by_grpo_on_the_ids_that_were_sampled_and_the_rewards_that_we_score(
    server: EnvServer, server_python: Path, tiny_checkpoint: Path, tmp_path: Path, compass: EnvSpec
) -> None:
    """Two real steps of a tiny checkpoint on a CPU, in TRL laid over the private server's torch and transformers."""
    python = throwaway.layered(
        tmp_path / "venv", server_python, "trl==1.16.0", "datasets", "pandas", "pyarrow", "multiprocess",
        "xxhash", "python-dateutil",
    )  # fmt: skip
    model = shutil.copytree(tiny_checkpoint, tmp_path / "tiny")
    taught = tmp_path / "taught"
    taught.mkdir()
    carry_out(python, f"import sys\nsys.argv[1:] = {[server.url, str(model)]!r}\n{_TEACH}", taught)
    code = lines_of("trl", URL=server.url, MODEL=str(model), OUTPUT=str(tmp_path / "grpo"))
    assert code.count("max_steps=200,") == code.count("max_completion_length=256,") == 1
    code = code.replace(
        "max_steps=200,",
        "max_steps=2, use_cpu=True, bf16=False, report_to='none', save_strategy='no', seed=1,",
    ).replace("max_completion_length=256,", "max_completion_length=24,")
    said = carry_out(python, _WATCH + _KEEP + code, tmp_path, timeout=400)

    played = json.loads((tmp_path / "played.json").read_text())
    rollouts = [json.loads(line) for line in (tmp_path / "rollouts.jsonl").read_text().splitlines()]
    assert len(played) == len(rollouts) == 2 * 8
    for log, row in zip(played, rollouts, strict=True):
        assert row["prompt"] == log["task_id"]
        # What the model said, as it was sampled; what the world said, masked; in turns, the last word the model's.
        assert [own for own, _, _ in row["runs"]] == [1, 0] * (len(log["said"]) - 1) + [1]
        assert [text for own, _, text in row["runs"] if own] == [text for text, _ in log["said"]]
        assert row["reward"] == log["reward"]
    assert len({row["reward"] for row in rollouts}) > 1, "no rollout succeeded, or all did: nothing is shown"
    for log, row in zip(played, rollouts, strict=True):
        success, conversation = await _scored(compass, log["task_id"], log["said"])
        assert row["reward"] == success
        assert all(message["content"] in row["opening"] for message in conversation[:2])
        heard = [text for own, text, _ in row["runs"] if not own]
        observed = [message["content"] for message in conversation[2:] if message["role"] == "user"]
        assert all(part in text for part, text in zip(observed, heard, strict=True))
    printed = [ast.literal_eval(line) for line in said if line.startswith("{'step'")]
    steps = [step for step in printed if "reward" in step]
    means = [sum(row["reward"] for row in rollouts[at : at + 8]) / 8 for at in (0, 8)]
    assert [step["reward"] for step in steps] == pytest.approx(means)


_PERFECT = """
import json
import sys
from types import SimpleNamespace
from evalharness.rl.clients.trl import TemplateError, rollout
from transformers import AutoTokenizer

url, folder, eos = sys.argv[1:]
tokenizer = AutoTokenizer.from_pretrained(folder)
end = tokenizer.eos_token_id
tokenizer.add_special_tokens({"additional_special_tokens": ["<|other|>"], "eos_token": eos})
reply = tokenizer("Action: turn right", add_special_tokens=False)["input_ids"]
padding = [tokenizer.pad_token_id] * 3


def generate(prompts, *_):
    return [reply + [end] + padding for _ in prompts], [[0.5] * (len(reply) + 4) for _ in prompts]


trainer = SimpleNamespace(
    processing_class=tokenizer, model=SimpleNamespace(config=SimpleNamespace(max_position_embeddings=4096)),
    state=SimpleNamespace(global_step=0), args=SimpleNamespace(max_completion_length=30), use_vllm=True,
    _generate_single_turn=generate,
)
# East is one turn to the right away, north is two.
played = rollout(url)(["compass/open-0/001", "compass/open-0/000"], trainer)
text = tokenizer.decode(played["prompt_ids"][1] + played["completion_ids"][1])
sampled = [sum(mask) for mask in played["env_mask"]]
print(json.dumps([played["episode_reward"], sampled, len(reply), text.count("<|end|>"), "<|pad|>" in text]))
tokenizer.chat_template = tokenizer.chat_template.replace("<|end|>", "")
try:
    rollout(url)(["compass/open-0/001"], trainer)
except TemplateError as error:
    print(error)
"""


@pytest.mark.parametrize("eos", ["<|end|>", "<|other|>"])
def test_a_perfect_policy_gets_every_reward_from_trl_whatever_the_tokenizer_s_eos_token_is(
    server: EnvServer, server_python: Path, tiny_checkpoint: Path, tmp_path: Path, eos: str
) -> None:
    """The real tokenizer and template, and a policy in the trainer's place: replies end as the template says."""
    python = throwaway.layered(tmp_path / "venv", server_python, "websockets")
    code = f"import sys\nsys.argv[1:] = {[server.url, str(tiny_checkpoint), eos]!r}\n{_PERFECT}"
    line, refusal = carry_out(python, code, tmp_path)
    rewards, sampled, length, ends, padded = json.loads(line)
    assert rewards == [1.0, 1.0]
    assert sampled == [length + 1, 2 * (length + 1)]
    # system, user; the reply, the observation; the last reply
    assert (ends, padded) == (5, False)
    assert "special token" in refusal


_CALLS = """
import importlib.resources
import trl
from transformers import AutoTokenizer

# A random checkpoint calls no tool: what it says is written here, everything else is the trainer's own.
def said(self, prompts, *more, **options):
    tokenizer, found = self.processing_class, []
    for ids in prompts:
        text = tokenizer.decode(ids)
        call = '<tool_call>\\n{"name": "act", "arguments": {"command": "turn right"}}\\n</tool_call>'
        text = "Done." if "<tool_response>" in text else call
        found.append(tokenizer.encode(text, add_special_tokens=False) + [tokenizer.eos_token_id])
    return found, None

trl.GRPOTrainer._generate_single_turn = said
"""


def test_trl_s_tool_loop_acts_and_takes_the_environment_s_reward(
    server: EnvServer, tuning: TuneInstall, tiny_checkpoint: Path, tmp_path: Path
) -> None:
    """One real step: north is two turns to the right away, east is one, and each episode has one call."""
    model = shutil.copytree(tiny_checkpoint, tmp_path / "tiny")
    templates = tuning.python.parents[1].glob("lib/python*/site-packages/trl/chat_templates/qwen3.jinja")
    (model / "chat_template.jinja").write_text(next(templates).read_text())
    code = lines_of("trl", 1, URL=server.url, MODEL=str(model), OUTPUT=str(tmp_path / "grpo"))
    assert code.count("max_steps=200)") == 1
    code = code.replace(
        "max_steps=200)",
        "max_steps=1, per_device_train_batch_size=8, num_generations=2, use_cpu=True, bf16=False, logging_steps=1,"
        "report_to='none', save_strategy='no', shuffle_dataset=False)",
    )
    said = carry_out(tuning.python, _WATCH + _CALLS + code, tmp_path, timeout=400)
    played = json.loads((tmp_path / "played.json").read_text())
    assert len(played) == 8
    assert said[-1] == str([sum(log["reward"] for log in played) / 8])
    assert 0 < sum(log["reward"] for log in played) < 8


async def _scored(spec: EnvSpec, task_id: str, said: Sequence[Sequence[str]]) -> tuple[float, list[Message]]:
    """(success, the conversation before the last reply) of an evaluation in which a model says the same."""

    class Speaker(Player):
        asked: list[Message]

        async def reply(
            self, messages: list[Message], *, turn: int, form: RequestForm | None = None
        ) -> Reply:
            self.asked = list(messages)
            text, reason = said[turn - 1]
            return Reply(text, finish_reason=reason)

    task = spec.suites.load_tasks("open", None, 0)[int(task_id.rsplit("/", 1)[1])]
    worker, speaker = WorkerProcess(spec, None, None), Speaker()
    try:
        episode = await play_episode(
            task,
            RemoteEnvironment(worker, 0),
            lambda _: speaker,
            prompt=load_prompt(spec),
            surface=PlayedSurface(spec),
            max_turns=MAX_TURNS,
        )
    finally:
        await worker.close()
    assert len(episode.turns) == len(said)
    return float(episode.success), speaker.asked


_VERL_LOOP = """
import asyncio
import json
import sys
from types import SimpleNamespace
import hydra
import pandas
from omegaconf import OmegaConf
from transformers import AutoTokenizer
from verl.experimental.agent_loop.agent_loop import DictConfigWrap, ToolListWrap
from verl.workers.rollout.replica import TokenOutput

tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
reply = [*tokenizer("Action: turn right", add_special_tokens=False)["input_ids"], tokenizer.eos_token_id]
entry = OmegaConf.load("loop.yaml")[0]
del entry["name"]  # as verl's registry has it
table = pandas.read_parquet("train.parquet").set_index("task", drop=False)


class Engine:
    async def generate(self, request_id, *, prompt_ids, sampling_params):
        ids = reply[: sampling_params["max_tokens"]]
        return TokenOutput(token_ids=ids, log_probs=[-0.5] * len(ids), extra_fields={"max_global_steps": 7})


async def play_episode(task, room):
    config = OmegaConf.create({"actor_rollout_ref": {"rollout": {"prompt_length": 3000, "response_length": room}}})
    loop = hydra.utils.instantiate(
        config=entry, trainer_config=DictConfigWrap(config), server_manager=Engine(), tokenizer=tokenizer,
        processor=None, hf_model_type="llama", dataset_cls=None, data_config=DictConfigWrap(OmegaConf.create({})),
        tools=ToolListWrap([]),
    )
    row = {**table.loc[task], "raw_prompt": table.loc[task]["prompt"]}
    done = await loop.run({"temperature": 1.0}, **{key: row[key] for key in row if key != "agent_name"})
    tensors = done.as_dict()
    sampled = [t for t, own in zip(done.response_ids, done.response_mask, strict=True) if own]
    print(json.dumps([
        done.reward_score, done.num_turns, sampled == reply * (len(sampled) // len(reply)), len(sampled) // len(reply),
        len(done.response_ids) == len(done.response_logprobs) <= room, tensors["rm_scores"].sum().item(),
        done.response_logprobs.count(-0.5) == len(sampled), done.extra_fields["max_global_steps"],
        tokenizer.decode(done.prompt_ids + done.response_ids),
    ]))


asyncio.run(play_episode("compass/open-0/001", 500))
asyncio.run(play_episode("compass/open-0/000", 500))
asyncio.run(play_episode("compass/open-0/000", 3 * len(reply) // 2))
"""


def test_verls_own_agent_loop_gets_rewards_and_the_sampled_ids(
    server: EnvServer, server_python: Path, tiny_checkpoint: Path, tmp_path: Path
) -> None:
    """verl's classes make the loop from the page's file; a policy that only turns right replaces its engine."""
    python = throwaway.layered(
        tmp_path / "venv", server_python, "verl==0.9.1", "hydra-core", "omegaconf", "antlr4-python3-runtime==4.9.3",
        "tensordict==0.10.0", "ray", "codetiming", "datasets", "pandas", "pyarrow", "multiprocess", "xxhash",
        "python-dateutil", "dill", "pytz", "torchdata", "orjson", "importlib_metadata", "zipp", "pyvers", "msgpack",
        "websockets",
    )  # fmt: skip
    page = (PAGES / "verl-agent.md").read_text()
    (config,) = re.findall(r"^```yaml\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    (tmp_path / "loop.yaml").write_text(config.replace("http://127.0.0.1:8000", server.url))
    assert carry_out(python, lines_of("verl-agent", 1, URL=server.url), tmp_path) == []
    said = carry_out(python, f"import sys\nsys.argv[1:] = {[str(tiny_checkpoint)]!r}\n{_VERL_LOOP}", tmp_path)
    east, north, cut = (json.loads(line) for line in said if line.startswith("["))
    # East is one turn to the right away, north is two: (system, user, reply) and two messages more.
    assert east[:-1] == [1.0, 3, True, 1, True, 1.0, True, 7]
    assert north[:-1] == [1.0, 5, True, 2, True, 1.0, True, 7]
    assert all(
        part in north[-1] for part in ("You are a navigator.", "Goal: face north", "Observation: You face")
    )
    # The room for the episode ends during or before the second reply: no reward.
    assert cut[0] == 0.0
    assert cut[4]
