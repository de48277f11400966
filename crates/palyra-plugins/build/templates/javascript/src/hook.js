// The hook of this skill: a function that receives an event and returns a decision. Host interfaces
// are imported by name, such as `import { write } from 'palyra:host/log@1.0.0';`, and must be listed in wit/world.wit too.
const decision = (verdict, reason = '') => ({ verdict, reason, text: undefined });

export const hook = {
  // Throwing means that the hook failed; before an effect, a failing hook refuses.
  handle(event) {
    const call = JSON.parse(event.payload);
    if (!call.tool) throw 'the payload names no tool';
    if (event.payload.includes('.env')) return decision('block', 'the call is about a `.env` file');
    return decision('proceed');
  },
};
