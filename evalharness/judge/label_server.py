"""`evalharness label`: serves the page and keeps each decision. What a judge said comes after that."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

from aiohttp import web

from evalharness.base.errors import InfrastructureError
from evalharness.base.terminal import say
from evalharness.judge.draw import DrawnTurn
from evalharness.judge.label_page import label_data, label_page, turn_data
from evalharness.judge.labels import LabelFolder, checked
from evalharness.judge.verdict import KINDS, Rater
from evalharness.runs.watch_page import guard, serve_application


def application(store: LabelFolder, drawn: Sequence[DrawnTurn], judges: Sequence[Rater]) -> web.Application:
    """`store` has been opened. `judges` are those who judged the same run."""
    html = label_page(store.run.folder.name, store.rater)
    titles = dict(store.run.manifest.titles)

    def said(turn: DrawnTurn) -> dict[str, Any]:
        """The person's label, and what judges said once there is one."""
        label = store.labels.get(turn.key)
        shown = [] if label is None else [judge for judge in judges if turn.key in judge.verdicts]
        return {
            "label": label_data(label),
            "judges": [
                {"name": judge.name, **(label_data(judge.verdicts[turn.key]) or {})} for judge in shown
            ],
        }

    async def page(request: web.Request) -> web.Response:
        return web.Response(text=html, content_type="text/html")

    async def turns(request: web.Request) -> web.Response:
        listed = [{"family": t.family, "key": list(t.key), **said(t)} for t in drawn]
        facts = {"run": store.run.folder.name, "rater": store.rater, "kinds": KINDS, "titles": titles}
        return web.json_response({**facts, "turns": listed}, headers={"Cache-Control": "no-store"})

    async def turn(request: web.Request) -> web.Response:
        return web.json_response(turn_data(chosen(request)), headers={"Cache-Control": "no-store"})

    async def keep(request: web.Request) -> web.Response:
        # A page elsewhere can send a form or plain text without asking; JSON it cannot.
        if request.content_type != "application/json":
            raise web.HTTPUnsupportedMediaType(text="labels are JSON")
        try:
            body = json.loads(await request.read())
            if not isinstance(body, dict):
                raise ValueError("a label is an object")
            verdict = checked(body.get("wrong"), body.get("kind"), body.get("note", ""))
        except (ValueError, RecursionError) as error:
            raise web.HTTPBadRequest(text=str(error)) from None
        where = chosen(request)
        try:
            store.add(where.key, verdict)
        except InfrastructureError as error:
            raise web.HTTPInsufficientStorage(text=str(error)) from None
        return web.json_response(said(where))

    def chosen(request: web.Request) -> DrawnTurn:
        number = int(request.match_info["number"])
        if number >= len(drawn):
            raise web.HTTPNotFound(text="no such turn was drawn")
        return drawn[number]

    async def nothing(request: web.Request) -> web.Response:
        return web.Response(status=204)

    app = web.Application(middlewares=[guard], client_max_size=100_000)
    app.add_routes(
        [
            web.get("/", page),
            web.get("/favicon.ico", nothing),
            web.get("/data/turns", turns),
            web.get(r"/data/turn-{number:\d{1,7}}", turn),
            web.post(r"/data/turn-{number:\d{1,7}}", keep),
        ]
    )
    return app


def serve(
    store: LabelFolder,
    drawn: Sequence[DrawnTurn],
    judges: Sequence[Rater],
    *,
    port: int = 0,
    ready: Callable[[str], Any] = lambda url: say(f"{url}   (Ctrl-C ends it)", stderr=False),
) -> None:
    """Until Ctrl-C. Raises UserError when the port is taken."""
    try:
        asyncio.run(serve_application(application(store, drawn, judges), port, ready))
    except KeyboardInterrupt:
        return
