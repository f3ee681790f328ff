// A reporter of vitest that reports nothing. Set-up files can be named in vitest's
// configuration only, and reporters are given that before tests run: it adds ours.
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const setup = path.join(path.dirname(fileURLToPath(import.meta.url)), 'setup.mjs')

export default class Control {
  onInit(vitest) {
    for (const { config } of vitest.projects?.length ? vitest.projects : [vitest]) {
      if (!config.browser?.enabled) config.setupFiles.push(setup) // a browser has no files
    }
  }
}
