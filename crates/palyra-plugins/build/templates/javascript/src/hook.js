// The hook of this skill: a function that is told what is about to happen and says what is to become of it. Interfaces of the host
// are imported by name, such as `import { write } from 'palyra:host/log@1.0.0';`, and named in wit/world.wit too.
const decision = (verdict, reason = '') => ({ verdict, reason, text: undefined });

export const hook = {
  // What is thrown counts as a failing hook, and before an effect a failing hook refuses.
  handle(event) {
    const call = JSON.parse(event.payload);
    if (!call.tool) throw 'the payload names no tool';
    if (event.payload.includes('.env')) return decision('block', 'the call is about a `.env` file');
    return decision('proceed');
  },
};
