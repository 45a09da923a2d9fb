// Only the newest of several requests may show what it fetched; what nobody waits for any more is aborted.

export class Newest {
  /** The signal of a new request; those before it are aborted. Where it is aborted, its outcome must not be shown. */
  begin() {
    this.end();
    this._controller = new AbortController();
    return this._controller.signal;
  }

  /** Abort what is under way. */
  end() {
    this._controller?.abort();
  }
}
