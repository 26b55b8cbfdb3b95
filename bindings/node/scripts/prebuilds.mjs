// For npm pack: puts the libraries and the license of the checkout into the package, and removes them afterwards.
import { cpSync, existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL("..", import.meta.url));
const root = join(here, "..", "..");
const platforms = () =>
  readdirSync(join(root, "prebuilds"), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name);

if (process.argv[2] === "copy") {
  if (!existsSync(join(root, "prebuilds")) || platforms().length === 0) {
    console.error("there is no library in prebuilds/: run ./build.sh native first");
    process.exit(1);
  }
  for (const name of platforms()) {
    cpSync(join(root, "prebuilds", name), join(here, "prebuilds", name), { recursive: true });
  }
  cpSync(join(root, "LICENSE"), join(here, "LICENSE"));
} else {
  rmSync(join(here, "prebuilds"), { recursive: true, force: true });
  rmSync(join(here, "LICENSE"), { force: true });
}
