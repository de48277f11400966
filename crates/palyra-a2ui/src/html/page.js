"use strict";
(() => {
  const main = () => document.querySelector("main");
  const { events, page } = main()?.dataset ?? {};
  if (!events || !page || !window.EventSource) return;
  const wait = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
  let newest = 0;
  let stale = false;
  let asking = false;

  // What a page brought along is the agent's to change; what a person entered is not.
  const entered = (field) => {
    if ("entered" in field.dataset) return true;
    if (field.type === "checkbox") return field.checked !== field.defaultChecked;
    if (!field.options) return field.value !== field.defaultValue;
    const brought = [...field.options].find((option) => option.defaultSelected) ?? field.options[0];
    return field.value !== brought?.value;
  };

  const keep = (field, next) => {
    if (field.type === "checkbox") next.checked = field.checked;
    else if (!next.options || [...next.options].some((option) => option.value === field.value)) next.value = field.value;
    next.dataset.entered = "";
  };

  const show = (text) => {
    const now = main();
    const next = new DOMParser().parseFromString(text, "text/html").querySelector("main");
    if (!next) return;
    const same = (old) => old?.id && next.querySelector("#" + CSS.escape(old.id));
    for (const field of now.querySelectorAll("[id^='f-']")) {
      const again = same(field);
      if (again && again.type === field.type && entered(field)) keep(field, again);
    }
    const unfolded = next.querySelectorAll("details");
    now.querySelectorAll("details").forEach((old, index) => {
      if (unfolded[index]) unfolded[index].open = old.open;
    });
    // Where a form was answered, the answer holds until the agent draws something new.
    const notice = now.querySelector("[role='status'], [role='alert']");
    if (notice && next.dataset.version === now.dataset.version) next.querySelector("h1")?.after(notice);
    const at = document.activeElement;
    const here = same(at);
    now.replaceWith(next);
    if (!here) return;
    here.focus({ preventScroll: true });
    // Fields for numbers and addresses have no place inside of them that could be asked for.
    if (here.type === at.type && at.selectionStart != null) here.setSelectionRange(at.selectionStart, at.selectionEnd);
  };

  // One at a time: two answers under way could arrive in the wrong order, and the older one would stay.
  const renew = async () => {
    if (asking) return;
    asking = true;
    try {
      while (stale || Number(main().dataset.version) < newest) {
        const before = main();
        stale = false;
        const answer = await fetch(page, { cache: "no-store", credentials: "omit" });
        if (answer.status === 404) return location.replace(page);
        if (answer.ok) show(await answer.text());
        if (main() !== before) continue;
        stale = true;
        await wait(2000);
      }
    } catch {
      // Nobody answers. The stream tells when somebody does again.
      stale = true;
    } finally {
      asking = false;
    }
  };

  const follow = () => {
    const source = new EventSource(events);
    source.addEventListener("open", renew);
    source.addEventListener("version", (event) => {
      newest = Math.max(newest, Number(event.lastEventId));
      renew();
    });
    source.addEventListener("questions", () => {
      stale = true;
      renew();
    });
    source.addEventListener("end", () => {
      source.close();
      location.replace(page);
    });
    source.addEventListener("error", async () => {
      // A browser tries again by itself unless it was refused; the page says whether that was for good.
      if (source.readyState !== EventSource.CLOSED) return;
      await wait(5000);
      stale = true;
      await renew();
      follow();
    });
  };
  follow();
})();
