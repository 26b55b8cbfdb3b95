"use strict";
// @ts-check
// For require(): the same module that import gives, so that there is one gate and one table of open stores for
// each JavaScript environment. Nothing in it waits at the top level, which is what lets Node.js require it.
module.exports = require("./index.js");
