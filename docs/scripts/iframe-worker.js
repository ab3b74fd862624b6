// Search works from a disk, too: browsers start no worker of a page that is a file, so its script runs in a hidden frame.
// MkDocs Material fetches a script of this name from elsewhere, unless the site brings one.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.append(frame)
      this.room = frame.contentWindow
      this.room.postMessage = data => setTimeout(() => this.dispatchEvent(new MessageEvent("message", { data })))
      this.room.importScripts = (...addresses) =>
        addresses.reduce((done, one) => done.then(() => this.load(one)), Promise.resolve())
      this.ready = this.load(address)
    }

    load(address) {
      return new Promise((done, failed) => {
        const script = this.room.document.createElement("script")
        script.src = new URL(address, document.baseURI).href
        script.onload = done
        script.onerror = failed
        this.room.document.head.append(script)
      })
    }

    postMessage(data) {
      this.ready = this.ready.then(() => { this.room.dispatchEvent(new MessageEvent("message", { data })) })
    }
  }
}
