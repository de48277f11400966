// The tools of this skill. Host interfaces are imported by name, such as
// `import { write } from 'palyra:host/log@1.0.0';`, and must be listed in wit/world.wit too.
import { tools } from './tools.js';

// An error that the model can correct by changing the input. Any other error makes the call fail.
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
