"""A program that is started as vLLM is and answers as it does, from a word in the folder that it serves.

`skill.txt` in a checkpoint or adapter: the goals of the Compass tasks that it reaches (`north east`). Each start and
each adapter that was loaded is a line in `$FAKE_VLLM_LOG`.
"""

from __future__ import annotations

import sys
from pathlib import Path

_PROGRAM = '''#!{python}
import argparse, json, os, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("command")
parser.add_argument("model")
parser.add_argument("--served-model-name")
parser.add_argument("--port", type=int)
parser.add_argument("--enable-lora", action="store_true")
parser.add_argument("--max-lora-rank", type=int, default=16)
given, _ = parser.parse_known_args()
models = {{given.served_model_name: given.model}}

def note(*words):
    with open(os.environ["FAKE_VLLM_LOG"], "a") as log:
        print(*words, file=log)

note("start", Path(given.model).name)

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def reply(self, value, status=200):
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        if self.path == "/health":
            return self.reply({{}})
        if self.path == "/v1/models":
            listed = [{{"id": name, "root": root, "max_model_len": 4096}} for name, root in models.items()]
            return self.reply({{"data": listed}})
        self.reply({{}}, 404)

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/v1/load_lora_adapter":
            if not given.enable_lora or os.environ.get("VLLM_ALLOW_RUNTIME_LORA_UPDATING") != "True":
                return self.reply({{"error": {{"message": "not allowed"}}}}, 404)
            if json.loads((Path(body["lora_path"]) / "adapter_config.json").read_text())["r"] > given.max_lora_rank:
                return self.reply({{"error": {{"message": "rank too high"}}}}, 400)
            models[body["lora_name"]] = body["lora_path"]
            note("load", Path(body["lora_path"]).name)
            return self.reply({{}})
        if body["model"] not in models:
            return self.reply({{"error": {{"message": "no such model"}}}}, 404)
        skill = Path(models[body["model"]]) / "skill.txt"
        goals = [word for word in skill.read_text().split()] if skill.exists() else []
        able = any(f"face {{goal}}" in text_of_task(body["messages"]) for goal in goals)
        text = "Thought: on\\nAction: turn right" if able else "Thought: hm\\nAction: turn up"
        message = {{"role": "assistant", "content": text}}
        self.reply({{
            "object": "chat.completion",
            "choices": [{{"index": 0, "message": message, "finish_reason": "stop"}}],
            "usage": {{"prompt_tokens": 10, "completion_tokens": 5}},
        }})

def text_of_task(messages):
    """What came after the worked example: its goal is not this task's."""
    whole = "\\n".join(m["content"] for m in messages if m["role"] == "user")
    return whole[whole.rfind("face "):] if "face " in whole else ""

ThreadingHTTPServer(("127.0.0.1", given.port), Handler).serve_forever()
'''


def make_fake_vllm(folder: Path) -> Path:
    """The program, for `--vllm`."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "vllm"
    path.write_text(_PROGRAM.format(python=sys.executable))
    path.chmod(0o755)
    return path


def set_skill(folder: Path, goals: str) -> Path:
    (folder / "skill.txt").write_text(goals)
    return folder
