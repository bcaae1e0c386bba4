"""Serve the page of `evalharness judge label` and store each decision. The page shows model judges' verdicts on a turn
only after the person has labelled it."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from importlib.resources import files
from typing import Any

from aiohttp import web

from evalharness.base.errors import InfrastructureError, UserError
from evalharness.base.terminal import say
from evalharness.door.door import is_one_of, keep_open, listen
from evalharness.judge.draw import DrawnTurn
from evalharness.judge.labels import LabelFolder
from evalharness.judge.turn_prompt import EARLIER_TURNS
from evalharness.judge.verdict import KINDS, Rater, check_verdict
from evalharness.results.html.document import asset, document

HOST = "127.0.0.1"
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_BODY = """\
<div id="app"><header id="bar"></header><main id="main" tabindex="-1"><p class="loading">Loading …</p></main></div>
<noscript><p>Labelling needs JavaScript, which this page brings along: it loads nothing from elsewhere.</p></noscript>
"""


def read_asset(name: str) -> str:
    return (files("evalharness.judge") / "assets" / name).read_text(encoding="utf-8")


def label_page(run: str, rater: str) -> str:
    """Return the HTML page. Its script loads the turns from the same server."""
    script = (
        f"(() => {{\n'use strict';\n{asset('report/assets/1-text.js')}\n{read_asset('label.js')}\n}})();\n"
    )
    style = asset("report/assets/viewer.css") + read_asset("label.css")
    title = f"labels of {rater} · {run} · evalharness"
    return "".join(document(title, style, script, _BODY, connect="'self'"))


def turn_data(drawn: DrawnTurn) -> dict[str, Any]:
    """Return what the page shows of a turn: the same texts as in a judge's prompt, but not shortened."""
    episode = drawn.episode
    before, turns = drawn.since(EARLIER_TURNS)
    return {
        "task_id": episode.task_id,
        "sample": episode.sample,
        "family": episode.family,
        "turn": drawn.number,
        "goal": episode.goal,
        "left_out": drawn.number - len(turns),
        "before": before,
        "turns": [
            {
                "turn": turn.turn,
                "thought": turn.thought,
                "action": turn.action,
                "reply": turn.reply if turn.action is None else None,
                "observation": turn.observation,
            }
            for turn in turns
        ],
    }


async def _guard(request: web.Request, handler: Handler, token: str) -> web.StreamResponse:
    """Answer only requests with the printed token, to keep out other web pages and other users of this machine."""
    if request.path == "/favicon.ico":
        return web.Response(status=204)
    if not is_one_of(request.path.split("/")[1], [token]):
        raise web.HTTPForbidden(text="open the address that evalharness judge label printed")
    if request.host.rsplit(":", 1)[0] not in (HOST, "localhost"):
        raise web.HTTPForbidden(text="this server answers to 127.0.0.1 only")
    if request.headers.get("Origin", f"http://{request.host}") != f"http://{request.host}":
        raise web.HTTPForbidden(text="requests of other pages are not answered")
    keep_open(request)
    response = await handler(request)
    response.headers["Referrer-Policy"] = "no-referrer"
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Cross-Origin-Resource-Policy"] = "same-origin"
    return response


def application(
    store: LabelFolder, drawn: Sequence[DrawnTurn], judges: Sequence[Rater], token: str
) -> web.Application:
    """Return the web application, with all paths below /TOKEN/. `store` must be open, `judges` of the same run."""

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        return await _guard(request, handler, token)

    html = label_page(store.run.folder.name, store.rater)
    titles = dict(store.run.manifest.titles)

    def label_and_judges(turn: DrawnTurn) -> dict[str, Any]:
        """Return the person's label and, once it exists, the judges' verdicts."""
        label = store.labels.get(turn.key)
        shown = [] if label is None else [judge for judge in judges if turn.key in judge.verdicts]
        return {
            "label": None if label is None else asdict(label),
            "judges": [{"name": judge.name, **asdict(judge.verdicts[turn.key])} for judge in shown],
        }

    async def turns(request: web.Request) -> web.Response:
        listed = [{"family": t.family, "key": list(t.key), **label_and_judges(t)} for t in drawn]
        facts = {"run": store.run.folder.name, "rater": store.rater, "kinds": KINDS, "titles": titles}
        return web.json_response({**facts, "turns": listed}, headers={"Cache-Control": "no-store"})

    async def turn(request: web.Request) -> web.Response:
        return web.json_response(
            turn_data(find_requested_turn(request)), headers={"Cache-Control": "no-store"}
        )

    async def keep(request: web.Request) -> web.Response:
        # Browsers let a page of another origin post a form or plain text without asking this server, but not JSON.
        if request.content_type != "application/json":
            raise web.HTTPUnsupportedMediaType(text="labels are JSON")
        try:
            body = json.loads(await request.read())
            if not isinstance(body, dict):
                raise ValueError("a label is an object")
            verdict = check_verdict(body.get("wrong"), body.get("kind"), body.get("note", ""))
        except (ValueError, RecursionError) as error:
            raise web.HTTPBadRequest(text=str(error)) from None
        where = find_requested_turn(request)
        try:
            store.add(where.key, verdict)
        except InfrastructureError as error:
            raise web.HTTPInsufficientStorage(text=str(error)) from None
        return web.json_response(label_and_judges(where))

    def find_requested_turn(request: web.Request) -> DrawnTurn:
        number = int(request.match_info["number"])
        if number >= len(drawn):
            raise web.HTTPNotFound(text="no such turn was drawn")
        return drawn[number]

    async def page(request: web.Request) -> web.Response:
        return web.Response(text=html, content_type="text/html")

    app = web.Application(middlewares=[guard], client_max_size=100_000)
    app.add_routes(
        [
            web.get(f"/{token}/", page),
            web.get(f"/{token}/data/turns", turns),
            web.get(rf"/{token}/data/turn-{{number:\d{{1,7}}}}", turn),
            web.post(rf"/{token}/data/turn-{{number:\d{{1,7}}}}", keep),
        ]
    )
    return app


def serve(store: LabelFolder, drawn: Sequence[DrawnTurn], judges: Sequence[Rater], *, port: int = 0) -> None:
    """Serve until Ctrl-C. Raises UserError if the port is taken."""

    async def serve_page() -> None:
        token = secrets.token_urlsafe(24)
        async with listen(application(store, drawn, judges, token), HOST, port, flags="--port") as url:
            say(f"{url}/{token}/   (Ctrl-C ends it)", stderr=False)
            await asyncio.Event().wait()

    if not 0 <= port <= 65535:
        raise UserError(f"--port {port}: a port is a number up to 65535, or 0 for a free one")
    try:
        asyncio.run(serve_page())
    except KeyboardInterrupt:
        return
