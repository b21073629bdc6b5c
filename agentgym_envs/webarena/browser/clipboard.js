// The clipboard of one episode: that of the browser is neither read nor written.
//
// Runs in the isolated world. A copied text goes to the session (`agentgymCopied`), which puts it into
// `agentgym.clipboard` of the current page before a key is pressed. The page's own handlers of copy, cut and paste get
// an event with this clipboard instead of the browser's event.
(() => {
  const command = (name, value) => Document.prototype.execCommand.call(document, name, false, value);
  const isPassword = e => e instanceof HTMLInputElement && getter(HTMLInputElement, 'type')(e) === 'password';

  function held() {
    try {
      return top.agentgym.clipboard ?? '';  // also in a frame of the same origin
    } catch {
      return '';
    }
  }

  function handle(event) {
    if (!event.isTrusted) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    const [target] = event.composedPath(), { type } = event;
    const clipboardData = new DataTransfer();
    if (type === 'paste') clipboardData.setData('text/plain', held());
    const proceed = target.dispatchEvent(
      new ClipboardEvent(type, { clipboardData, bubbles: true, cancelable: true, composed: true }),
    );
    if (type === 'paste') {
      if (proceed && held()) command('insertText', held());
      return;
    }
    const text = proceed ? (isPassword(target) ? '' : String(getSelection())) : clipboardData.getData('text/plain');
    if (text) agentgymCopied(text);
    if (text && proceed && type === 'cut') command('delete');
  }

  for (const type of ['copy', 'cut', 'paste']) addEventListener(type, handle, { capture: true });
  document.addEventListener('agentgym:copy', event => agentgymCopied(String(event.detail)));
})();
