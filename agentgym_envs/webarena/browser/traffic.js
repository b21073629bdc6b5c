// Runs in the page's own world: fires an event on the document when a script starts a request, when it has ended, and
// when a script copies a text.
(() => {
  // The driver receives every console line: a page that writes thousands would block it for all other pages.
  for (const name of Object.keys(console)) if (typeof console[name] === 'function') console[name] = () => {};

  const notify = event => document.dispatchEvent(new Event(`agentgym:${event}`));
  const onResponse = () => setTimeout(notify, 0, 'response');  // after the page's own handlers of the response
  const { fetch } = window;
  window.fetch = function (...args) {
    notify('request');
    const promise = fetch.apply(this, args);
    promise.then(onResponse, onResponse);
    return promise;
  };
  for (const name of ['json', 'text', 'arrayBuffer', 'blob', 'bytes', 'formData']) {
    const read = Response.prototype[name];
    if (!read) continue;
    Response.prototype[name] = function (...args) {
      notify('request');
      const promise = read.apply(this, args);
      promise.then(onResponse, onResponse);
      return promise;
    };
  }
  if (window.Clipboard) {
    Clipboard.prototype.writeText = text => {
      document.dispatchEvent(new CustomEvent('agentgym:copy', { detail: String(text) }));
      return Promise.resolve();
    };
  }
  const { send } = XMLHttpRequest.prototype;
  XMLHttpRequest.prototype.send = function (...args) {
    notify('request');
    this.addEventListener('loadend', onResponse, { once: true });
    try {
      return send.apply(this, args);
    } catch (error) {
      onResponse();
      throw error;
    }
  };
})();
