# The hook of this skill: a method that is told what is about to happen and says what is to become of it. Interfaces of the host are
# imported like `from wit_world.imports import log`, and named in wit/world.wit too.
import json

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports.hook import Decision, Verdict


class Hook(exports.Hook):
    def handle(self, event):
        # What is raised as Err counts as a failing hook, and before an effect a failing hook refuses.
        call = json.loads(event.payload)
        if not call.get("tool"):
            raise Err("the payload names no tool")
        if ".env" in event.payload:
            return Decision(Verdict.BLOCK, "the call is about a `.env` file", None)
        return Decision(Verdict.PROCEED, "", None)
