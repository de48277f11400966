// The tools of this skill. Interfaces of the host are imported by name, such as
// `import { write } from 'palyra:host/log@1.0.0';`, and named in wit/world.wit too.
import { tools } from './tools.js';

// An error that the model may answer with another input. Any other error ends the call as failed.
const invalidInput = (why) => ({ tag: 'invalid-input', val: why });

function greet({ name }) {
  if (name === '') throw invalidInput('the name is empty');
  return { greeting: `Hello, ${name}!` };
}

const handlers = { greet };

export const tool = {
  describe: () => tools,
  call(id, input) {
    const handler = handlers[id];
    if (!handler) throw invalidInput(`there is no tool \`${id}\``);
    try {
      return JSON.stringify(handler(JSON.parse(input)));
    } catch (error) {
      throw error.tag ? error : { tag: 'failed', val: String(error) };
    }
  },
};
