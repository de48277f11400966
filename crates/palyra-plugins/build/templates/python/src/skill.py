# The tools of this skill. Host interfaces are imported like `from wit_world.imports import log`, and must be listed in wit/world.wit too.
import json

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports.tool import Description, Failure_Failed, Failure_InvalidInput

from tools import TOOLS


class InvalidInput(Exception):
    """The model may answer with another input. Any other error ends the call as failed."""


def greet(arguments):
    name = arguments["name"]
    if not name:
        raise InvalidInput("the name is empty")
    return {"greeting": f"Hello, {name}!"}


HANDLERS = {"greet": greet}


class Tool(exports.Tool):
    def describe(self):
        return [Description(**tool) for tool in TOOLS]

    def call(self, tool, input):
        try:
            handler = HANDLERS.get(tool)
            if handler is None:
                raise InvalidInput(f"there is no tool `{tool}`")
            return json.dumps(handler(json.loads(input)), ensure_ascii=False)
        except InvalidInput as why:
            raise Err(Failure_InvalidInput(str(why)))
        except Exception as why:
            raise Err(Failure_Failed(str(why)))
