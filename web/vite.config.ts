import { defineConfig } from "vite";

// Relative addresses, so that the page works under any prefix; no inline script, so that the strict policy holds.
export default defineConfig({
  base: "./",
  build: {
    outDir: "../src/wsh/http/static/ui",
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 900,
  },
  esbuild: { jsx: "automatic", jsxImportSource: "preact" },
});
