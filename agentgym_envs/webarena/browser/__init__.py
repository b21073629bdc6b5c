"""The browser: one Chromium for many episodes, driven by Playwright."""
