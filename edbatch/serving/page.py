"""The page that shows what a server does: it reads the figures that Prometheus reads."""

PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>EdBatch</title>
<style>
  body { font: 16px/1.5 system-ui, sans-serif; max-width: 46em; margin: 3em auto; padding: 0 1em; color: #222 }
  table { border-collapse: collapse; width: 100% } td { padding: .3em .6em; border-bottom: 1px solid #ddd }
  td:last-child { text-align: right; font-variant-numeric: tabular-nums }
  svg { width: 100%; height: 8em; background: #f6f6f6 }
  polyline { fill: none; stroke: #2a6fb0; stroke-width: 2 } h1 { font-weight: 600 } .gone { color: #a00 }
</style>
<h1>EdBatch</h1>
<p id="state">Requests a second, of the last two minutes:</p>
<svg viewBox="0 0 120 40" preserveAspectRatio="none"><polyline id="line" vector-effect="non-scaling-stroke"/></svg>
<table id="figures"></table>
<p>POST JSON to this address to get an answer; <a href="/metrics">/metrics</a> is for Prometheus.</p>
<script>
const seen = [];
async function look() {
  const state = document.getElementById("state");
  let text;
  try { text = await (await fetch("/metrics")).text(); }
  catch { state.textContent = "The server does not answer."; state.className = "gone"; return; }
  const figures = {};
  for (const line of text.split("\\n")) {
    const found = /^edbatch_([a-z_]+?)(?:\\{how="(\\w+)"\\})? ([-\\d.e+]+)$/.exec(line);
    if (found && !found[1].endsWith("created")) figures[found[2] || found[1].replace("_total", "")] = Number(found[3]);
  }
  const mean = figures.request_seconds_count ? 1000 * figures.request_seconds_sum / figures.request_seconds_count : 0;
  const rows = [["answered", figures.answered], ["failed", figures.failed], ["refused", figures.refused],
    ["out of time", figures.expired], ["cancelled", figures.cancelled], ["in flight", figures.in_flight],
    ["waiting", figures.waiting], ["rounds", figures.rounds], ["batches", figures.batches],
    ["mean time to the answer, ms", mean.toFixed(2)]];
  document.getElementById("figures").innerHTML =
    rows.map(([name, value]) => `<tr><td>${name}<td>${Number(value).toLocaleString("en")}`).join("");
  seen.push(figures.answered);
  if (seen.length > 121) seen.shift();
  const rates = seen.slice(1).map((value, at) => value - seen[at]), top = Math.max(1, ...rates);
  document.getElementById("line").setAttribute(
    "points", rates.map((rate, at) => `${120 - rates.length + at},${39 - 38 * rate / top}`).join(" "));
  state.className = "";
  state.textContent = `Requests a second, of the last two minutes: now ${rates.at(-1) ?? 0}, at most ${top}`;
}
look(); setInterval(look, 1000);
</script></html>
"""
