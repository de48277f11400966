# The hook of this skill: a method that receives an event and returns a decision. Host interfaces are
# imported like `from wit_world.imports import log`, and must be listed in wit/world.wit too.
import json

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports.hook import Decision, Verdict


class Hook(exports.Hook):
    def handle(self, event):
        # Raising Err means that the hook failed; before an effect, a failing hook refuses.
        call = json.loads(event.payload)
        if not call.get("tool"):
            raise Err("the payload names no tool")
        if ".env" in event.payload:
            return Decision(Verdict.BLOCK, "the call is about a `.env` file", None)
        return Decision(Verdict.PROCEED, "", None)
