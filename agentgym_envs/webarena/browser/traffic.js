// Runs in the page's own world: says on the document when a script asks a server for something, and when that is over.
(() => {
  // Whoever drives the browser is told of every line: a page that writes thousands would keep it from all others.
  for (const name of Object.keys(console)) if (typeof console[name] === 'function') console[name] = () => {};

  const say = what => document.dispatchEvent(new Event(`agentgym:${what}`));
  const answered = () => setTimeout(say, 0, 'answered');  // after what waits for the answer had its turn
  const { fetch } = window;
  window.fetch = function (...args) {
    say('asked');
    const promise = fetch.apply(this, args);
    promise.then(answered, answered);
    return promise;
  };
  for (const name of ['json', 'text', 'arrayBuffer', 'blob', 'bytes', 'formData']) {
    const read = Response.prototype[name];
    if (!read) continue;
    Response.prototype[name] = function (...args) {
      say('asked');
      const promise = read.apply(this, args);
      promise.then(answered, answered);
      return promise;
    };
  }
  const { send } = XMLHttpRequest.prototype;
  XMLHttpRequest.prototype.send = function (...args) {
    say('asked');
    this.addEventListener('loadend', answered, { once: true });
    try {
      return send.apply(this, args);
    } catch (error) {
      answered();
      throw error;
    }
  };
})();
