// The picker on a release's page: the sum of some cells in some periods with its 95 % interval, as dph_box and dph_over tell it, and
// its change from one period to another, as dph_compare does.
// It reads the files of its own release, and no other address. What it works out stands in the macros in sql/answering/: sums
// that do not depend on the order of cells, variances of nested nodes, and widths that are looked up in published tables.
"use strict";
const dphPicker = (() => {
  const loaded = new Map(); // cells, by table and period
  let release = null, place = "", weight = 0, asked = 0, page = { texts: {} };

  // -- words -----------------------------------------------------------------------------------------------------------------

  // A text in the language of the page, with its values. The English one is its key.
  function said(text, values = {}) {
    return (page.texts[text] || text).replace(/%\((\w+)\)s/g, (_, name) => values[name]).replaceAll("%%", "%");
  }

  const spoken = document.documentElement.lang === "en" ? "en-GB" : document.documentElement.lang; // the day before the month
  const dayForm = new Intl.DateTimeFormat(spoken, { day: "numeric", month: "long", year: "numeric", timeZone: "UTC" });
  // French has an ordinal for the first day of a month alone.
  const ofFirst = (text) => (spoken === "fr" ? text.replace(/(^|[^0-9])1(?=\s?[\p{L}–])/gu, "$11er") : text);
  const atNoon = (day) => new Date(`${day}T12:00:00Z`);

  // Days in words, from the first one to the one before `after`; in one month and year, these stand once.
  function daysBetween(first, after) {
    const last = new Date(atNoon(after).getTime() - 86400000);
    return last <= atNoon(first) ? ofFirst(dayForm.format(atNoon(first))) : ofFirst(dayForm.formatRange(atNoon(first), last));
  }

  const capital = (text) => text.charAt(0).toLocaleUpperCase(spoken) + text.slice(1);

  // -- numbers ---------------------------------------------------------------------------------------------------------------

  function compensated(numbers) {
    let sum = 0, error = 0;
    for (const number of numbers) {
      const part = number - error, next = sum + part;
      error = next - sum - part;
      sum = next;
    }
    return sum;
  }

  // Whole 2^-20ths are added as integers, so that the order of numbers does not matter; null without any number.
  function exactSum(numbers) {
    let whole = 0n, some = 0, many = 0;
    const rests = [];
    for (const number of numbers) {
      if (number === null || number !== number) continue;
      const units = Math.floor(number * 1048576);
      many += 1;
      if (Math.abs(some + units) > 2 ** 52) {
        whole += BigInt(some);
        some = 0;
      }
      if (Math.abs(units) > 2 ** 52) whole += BigInt(units);
      else some += units;
      rests.push(number - units / 1048576);
    }
    return many ? Number(whole + BigInt(some)) / 1048576 + compensated(rests) : null;
  }

  const known = (number) => number !== null && number !== undefined && number === number;

  function decimalsOf(error) {
    return error > 0 && error < 1 ? Math.min(15, -Math.floor(Math.log10(error))) : 0;
  }

  // A number with commas; halves go to the even digit, as on all pages.
  function shown(number, decimals) {
    const size = Math.abs(number);
    if (size >= 1e15) return String(number);
    const exact = size.toFixed(decimals + 40), rest = exact.slice(-40), cut = exact.slice(0, -40).replace(/\.$/, "");
    const isEven = /^50*$/.test(rest) && Number(cut.slice(-1)) % 2 === 0;
    const [whole, part] = (isEven ? cut : size.toFixed(decimals)).split(".");
    const text = whole.replace(/\B(?=(\d{3})+$)/g, page.thousands || ",") + (part ? `${page.decimal || "."}${part}` : "");
    return number < 0 && /[1-9]/.test(text) ? `−${text}` : text;
  }

  // The number that is told first: a single cell by its estimate, a sum by its unbiased one with half the interval beside it.
  // Under a rule of a minimum frequency words stand for a figure below the limit, and neither interval nor estimate beside it.
  function told(answer) {
    const width = known(answer.ci_upper) ? answer.ci_upper - answer.ci_lower : 0;
    const decimals = decimalsOf(answer.noise_error > 0 ? answer.noise_error : width / 3.92);
    const text = (number) => shown(number, decimals);
    const isBelow = (number) => answer.basis !== "known" && known(answer.below) && known(number) && number < answer.below;
    const isHidden = isBelow(answer.estimate) || isBelow(answer.unbiased);
    const ends = known(answer.ci_lower) && !isHidden && answer.basis !== "known" ? said("%(low)s to %(high)s", { low: text(answer.ci_lower), high: text(answer.ci_upper) }).replaceAll(" ", "\u00a0") : "";
    const isEstimate = answer.cells === 1 || !known(answer.unbiased);
    const value = isEstimate ? answer.estimate : answer.unbiased;
    const below = value - answer.ci_lower, above = answer.ci_upper - value;
    let number = isBelow(value) ? said("below %(limit)s", { limit: answer.below }) : text(value);
    const half = !isEstimate && ends && Math.abs(below - above) <= 1 ? text(Math.max(below, above)) : "";
    if (half) number += `\u00a0±\u00a0${half}`;
    else if (ends) number += ` (${ends})`;
    else if (answer.basis === "known") number += ` (${said("known")})`;
    const hasInside = ends && below >= 0 && above >= 0;
    const between = { number: text(value), low: text(answer.ci_lower), high: text(answer.ci_upper) };
    const sentence = hasInside ? said("%(number)s, between %(low)s and %(high)s with 95 %% confidence", between) : number;
    const whole = isHidden || !known(answer.whole_count) ? "" : isBelow(answer.whole_count) ? said("below %(limit)s", { limit: answer.below }) : shown(answer.whole_count, 0);
    return { number, sentence: kept(sentence), ends, half, isHidden, whole };
  }

  // No line breaks before a percent sign.
  const kept = (text) => text.replaceAll(" %", "\u00a0%");

  // -- what is looked up -----------------------------------------------------------------------------------------------------

  const columnsOf = (tables, scale) => (tables.find(([one]) => one === scale) || []).slice(1);

  // The first entry for at least so many cells; null beyond the table.
  function halfWidths(scale, cells) {
    const [numbers = [], once = [], twice = []] = columnsOf(release.half_widths, scale);
    const at = numbers.findIndex((number) => number >= cells);
    return at < 0 ? null : { one: once[at], two: twice[at] };
  }

  // The last entry for at most so many draws; null without a table. `which` is its column.
  function lastUpTo(table, scale, draws, which) {
    const columns = columnsOf(table, scale);
    if (!columns.length) return null;
    const most = Math.max(1, draws);
    let at = -1;
    columns[0].forEach((number, place) => {
      if (number <= most) at = place;
    });
    return at < 0 ? null : columns[which][at];
  }

  function reportReach(factor, row) {
    const half = factor ** 2 * (row.slope + row.step / 3) / 2;
    return half + Math.sqrt(half ** 2 + factor ** 2 * row.linear_variance);
  }

  // Half the width of an interval: alone, and where two hold together.
  function reachOf(row) {
    if (!row.has_bars) return null;
    if (row.linear_variance === 0) return { one: 0, two: 0 };
    if (!known(row.linear_variance)) return halfWidths(row.noise_scale, row.cells);
    if (known(row.step)) {
      const [once, twice] = release.normal;
      return { one: reportReach(once, row), two: reportReach(twice, row) };
    }
    const draws = row.linear_variance / row.noise_variance * (1 + 1e-9), error = Math.sqrt(row.linear_variance);
    const once = lastUpTo(release.linear_widths, row.noise_scale, draws, 1);
    const twice = lastUpTo(release.linear_widths, row.noise_scale, draws, 2);
    return known(once) ? { one: error * once, two: error * twice } : null;
  }

  // -- sums of a box ---------------------------------------------------------------------------------------------------------

  // The positions along an axis that meet the conditions on it and on its levels; null without a condition.
  function wantedAlong(axis, box) {
    const tests = [];
    if (axis.binned && box.has(axis.name)) {
      const [low, high] = box.get(axis.name), last = axis.other ? axis.size - 1 : axis.size;
      const holds = (end, limit, isLow) => (limit === null ? true : end === null ? false : isLow ? end >= limit : end <= limit);
      tests.push((at) => at < last && holds(axis.lower[at], low, true) && holds(axis.upper[at], high, false));
    }
    for (const [name, values] of axis.binned ? [] : [[axis.name, axis.values], ...axis.levels]) {
      if (!box.has(name)) continue;
      const chosen = new Set(box.get(name));
      tests.push((at) => chosen.has(values[at]));
    }
    return tests.length ? [...Array(axis.size).keys()].filter((at) => tests.every((test) => test(at))) : null;
  }

  const everyPosition = (axis) => [...Array(axis.size).keys()];
  const positionsIn = (table, box) => new Map(table.axes.map((axis) => [axis.name, wantedAlong(axis, box) || everyPosition(axis)]));

  // -- tiles of large tables -------------------------------------------------------------------------------------------------

  // The ends of the runs of positions along an axis: a sum over a run is what lies before its end less what lies before its start.
  // Each end has its sign, the part of the axis in which it is looked up, and its place there; no end at the first position.
  function endsAlong(axis, positions, parts) {
    const side = Math.ceil(axis.size / parts), ends = [];
    const end = (sign, after, part) => ends.push([sign, part, after - part * side - (part ? 0 : 1)]);
    positions.forEach((at, number) => {
      const part = Math.floor(at / side), isFirst = number === 0 || positions[number - 1] !== at - 1;
      if (isFirst) ends.start = at;
      if (positions[number + 1] === at + 1) return;
      end(1, at + 1, part);
      // What lies before a tile stands in the tile, too: a run within one tile needs no other.
      if (ends.start > 0) end(-1, ends.start, ends.start >= part * side ? part : Math.floor((ends.start - 1) / side));
    });
    return ends;
  }

  // The corners of the cells at these positions: sign, number of a tile, and the places in it along all axes.
  function cornersOf(table, [parts], along) {
    let corners = [[1, 0, []]];
    table.axes.forEach((axis, number) => {
      const ends = endsAlong(axis, along.get(axis.name), parts[number]);
      corners = corners.flatMap(([sign, tile, places]) => ends.map(([other, part, place]) => [sign * other, tile * parts[number] + part, [...places, place]]));
    });
    return corners;
  }

  // The numbers of the tiles that a question needs.
  function neededTiles(table, tiling, along) {
    let tiles = [0];
    table.axes.forEach((axis, number) => {
      const parts = new Set(endsAlong(axis, along.get(axis.name), tiling[0][number]).map(([, part]) => part));
      tiles = tiles.flatMap((tile) => [...parts].map((part) => tile * tiling[0][number] + part));
    });
    return tiles;
  }

  // What lies before each place of a tile, from its cells and the sums at its front: whole 2^-20ths, and what remains.
  function accumulated(values, [wholes, rests], sides, fronts) {
    const size = sides.reduce((all, side) => all * side, 1), whole = new Float64Array(size), rest = new Float64Array(size), at = sides.map(() => 0);
    let cell = 0, front = 0;
    for (let place = 0; place < size; place += 1) {
      if (fronts.some((has, axis) => has && at[axis] === 0)) {
        whole[place] = wholes ? wholes[front] : 0;
        rest[place] = rests ? rests[front] : 0;
        front += 1;
      } else {
        whole[place] = Math.floor(values[cell] * 1048576);
        rest[place] = values[cell] - whole[place] / 1048576;
        cell += 1;
      }
      for (let axis = sides.length - 1; axis >= 0; axis -= 1) {
        at[axis] += 1;
        if (at[axis] < sides[axis]) break;
        at[axis] = 0;
      }
    }
    let stride = 1;
    for (let axis = sides.length - 1; axis >= 0; axis -= 1) {
      for (let place = stride; place < size; place += 1) {
        if (Math.floor(place / stride) % sides[axis] === 0) continue;
        whole[place] += whole[place - stride];
        rest[place] += rest[place - stride];
      }
      stride *= sides[axis];
    }
    return { whole, rest, sides };
  }

  // The sum of a column over these positions; null for a column without numbers.
  function sumOfTiles(table, tiling, along, tiles, name) {
    let whole = 0n, some = 0;
    const rests = [];
    for (const [sign, number, places] of cornersOf(table, tiling, along)) {
      const column = tiles.get(number)[name];
      if (column === null) return null;
      const at = places.reduce((sum, place, axis) => sum * column.sides[axis] + place, 0);
      if (Math.abs(some) > 2 ** 51) {
        whole += BigInt(some);
        some = 0;
      }
      some += sign * column.whole[at];
      rests.push(sign * column.rest[at]);
    }
    return Number(whole + BigInt(some)) / 1048576 + compensated(rests);
  }

  function squaresAlong(positions, width, lines) {
    if (width > 0) {
      const nodes = new Map();
      for (const at of positions) nodes.set(Math.floor(at / width), (nodes.get(Math.floor(at / width)) || 0) + 1);
      return [...nodes.values()].reduce((sum, number) => sum + number ** 2, 0);
    }
    const nodes = lines.find(([number]) => number === width)[1];
    return compensated(
      nodes.map((weights, node) => {
        const chosen = positions.map((at) => weights[at]);
        return node ? -(compensated(chosen) ** 2) : compensated(chosen.map((one) => one ** 2));
      })
    );
  }

  function nestedVariance(cells, along) {
    if (!cells.levels.length) return null;
    return exactSum(
      cells.levels.map(([coefficient, widths]) =>
        coefficient * widths.reduce((all, [axis, width]) => all * squaresAlong(along.get(axis), width, cells.lines), 1)
      )
    );
  }

  function productsAlong(one, two, width, lines) {
    if (width > 0) {
      const nodes = new Map();
      for (const at of two) nodes.set(Math.floor(at / width), (nodes.get(Math.floor(at / width)) || 0) + 1);
      return one.reduce((sum, at) => sum + (nodes.get(Math.floor(at / width)) || 0), 0);
    }
    const nodes = lines.find(([number]) => number === width)[1], inTwo = new Set(two);
    return compensated(
      nodes.map((weights, node) => {
        const sum = (positions) => compensated(positions.map((at) => weights[at]));
        return node ? -sum(one) * sum(two) : compensated(one.filter((at) => inTwo.has(at)).map((at) => weights[at] ** 2));
      })
    );
  }

  // The covariance of the noise of two sums; null where it is not of linear estimates.
  function covariance(cells, one, two, common) {
    const { noise_variance: variance, step } = cells.law;
    if (known(step) || !known(variance)) return null;
    if (!cells.levels.length) return variance * [...common.values()].reduce((all, positions) => all * positions.length, 1);
    return exactSum(
      cells.levels.map(([coefficient, widths]) =>
        coefficient * widths.reduce((all, [axis, width]) => all * productsAlong(one.get(axis), two.get(axis), width, cells.lines), 1)
      )
    );
  }

  function reportVariance(law, atoms, count) {
    if (!known(law.step)) return null;
    const some = Math.max(0, count);
    return Math.max(0, law.alpha * atoms - law.beta * atoms ** 2 + law.gamma * some + law.delta * atoms * some);
  }

  // The row of one publication before it has an interval; null if no cell lies in the box.
  function summed(table, cells, along, tiling) {
    const many = [...along.values()].reduce((all, positions) => all * positions.length, 1);
    if (!many) return null;
    let numbers = [0], atoms = 0;
    for (const axis of table.axes) {
      const positions = along.get(axis.name);
      if (!tiling) numbers = numbers.flatMap((number) => positions.map((at) => number + at * axis.stride));
      for (const at of axis.atoms ? positions : []) atoms += axis.atoms[at];
    }
    const pick = tiling ? (name) => sumOfTiles(table, tiling, along, cells.tiles, name)
      : (name) => (cells[name] === null ? null : exactSum(numbers.map((number) => cells[name][number])));
    const unbiased = pick("unbiased"), law = cells.law;
    const row = { ...law, cut: cells.cut, below: cells.below, rows_of_each: cells.rows_of_each, cells: many, estimate: pick("estimate") ?? 0, all: cells.cells };
    row.whole_count = pick("whole");
    row.whole_first = cells.whole_first;
    row.unbiased = unbiased ?? (law.has_bars ? 0 : null);
    row.linear_variance = nestedVariance(cells, along) ?? reportVariance(law, atoms, row.unbiased);
    row.slope = Math.abs(law.gamma + law.delta * atoms);
    row.limits = cells.known ? limitsOf(table, cells.known, along) : null;
    row.is_known = row.limits !== null && row.limits[0] === row.limits[1];
    if (row.is_known) Object.assign(row, { estimate: row.limits[1], unbiased: row.limits[1], linear_variance: 0 });
    row.sums = cells.sums.length > 0;
    row.grouped = row.sums ? groupSums(cells, numbers, row) : null;
    return row;
  }

  // The least and the most that public figures leave of the count in a box: labels of the positions along each axis, and the figure
  // of each group of cells with the same labels.
  function limitsOf(table, [labels, shape, figures], along) {
    let parts = [[0, true]];
    table.axes.forEach((axis, number) => {
      const of = labels[number] || Array(axis.size).fill(0), all = Array(shape[number]).fill(0), held = Array(shape[number]).fill(0);
      of.forEach((label) => { all[label] += 1; });
      along.get(axis.name).forEach((at) => { held[of[at]] += 1; });
      parts = parts.flatMap(([group, isWhole]) => held.flatMap((many, label) =>
        (many ? [[group * shape[number] + label, isWhole && many === all[label]]] : [])));
    });
    const sum = (some) => some.reduce((rows, [group]) => rows + figures[group], 0);
    return [sum(parts.filter(([, isWhole]) => isWhole)), sum(parts)];
  }

  // Noisy sums of whole groups that make up the cells; null if the cells cut a group.
  function groupSums(cells, numbers, row) {
    const held = new Map();
    for (const number of numbers) {
      const isNoisy = cells.unbiased !== null && known(cells.unbiased[number]);
      const group = cells.groups === null ? null : cells.groups[number];
      if (!isNoisy && known(group)) held.set(group, (held.get(group) || 0) + 1);
    }
    const heldIn = (first, last) => [...held].reduce((sum, [group, many]) => sum + (group >= first && group <= last ? many : 0), 0);
    const whole = cells.sums.filter(([, , first, last, size]) => heldIn(first, last) === size);
    const inWhole = new Set(whole.map(([number]) => number));
    const used = whole.filter(([, parent]) => !inWhole.has(parent));
    if (row.has_bars && row.cells === row.all) used.push(...cells.sums.filter(([, parent]) => parent === null));
    const size = used.reduce((sum, one) => sum + one[4], 0);
    if (!used.length || size !== row.cells) return null;
    const [, , , , , , scale, variance] = used[0];
    return {
      unbiased: used.reduce((sum, one) => sum + one[5], 0),
      variance: used.length * variance,
      reach: halfWidths(scale, used.length),
    };
  }

  // The answer of dph_box for one publication.
  function answerOf(row) {
    const reach = reachOf(row), grouped = row.grouped, around = (middle, half) => [middle - half, middle + half];
    const ownVariance = row.linear_variance ?? (known(row.noise_variance) ? row.cells * row.noise_variance : null);
    const own = reach && known(row.unbiased) ? around(row.unbiased, grouped ? reach.two : reach.one) : null;
    const group = grouped ? around(grouped.unbiased, row.has_bars ? grouped.reach.two : grouped.reach.one) : null;
    const isGrouped = grouped !== null && (!row.has_bars || grouped.variance < ownVariance);
    const both = own && group ? [Math.max(own[0], group[0]), Math.min(own[1], group[1])] : null, isShared = both !== null && both[0] <= both[1];
    const ends = isShared ? both : isGrouped ? group : own;
    const variance = isGrouped ? grouped.variance : ownVariance, texts = release.notes;
    const answer = {
      estimate: row.estimate, unbiased: isShared ? (ends[0] + ends[1]) / 2 : isGrouped ? grouped.unbiased : row.unbiased, cells: row.cells,
      noise_error: ends ? Math.sqrt(variance) : null, ci_lower: ends ? ends[0] : null, ci_upper: ends ? ends[1] : null,
      basis: "noise_only", note: null, reliability: null, below: row.below, rows_of_each: row.rows_of_each, cut: cutOf([row]),
      whole_count: row.whole_count, whole_first: row.whole_first,
    };
    if (!ends) return { ...answer, note: said(row.sums ? texts.cuts_group : texts.no_interval) };
    if (row.is_known) return { ...answer, basis: "known", reliability: "known", note: said(texts.known) };
    answer.basis = isGrouped ? "groups" : !row.has_bars ? "noise_only" : known(row.linear_variance) ? "linear" : "unbiased";
    if (row.estimate < ends[0] - 1e-6 || row.estimate > ends[1] + 1e-6) answer.note = said(texts.smoothed);
    else if (row.estimate < 0) answer.note = said(texts.below);
    if (row.limits) {
      const [least, most] = row.limits, within = (end) => Math.min(Math.max(end, least), most);
      ends[0] = answer.ci_lower = Math.min(answer.unbiased, within(ends[0]));
      ends[1] = answer.ci_upper = Math.max(answer.unbiased, within(ends[1]));
      if (!answer.note && (row.estimate < least || row.estimate > most)) answer.note = said(texts.beyond);
    }
    const error = ends[1] - ends[0] > 6 * answer.noise_error ? (ends[1] - ends[0]) / 4 : answer.noise_error;
    const { fair, good } = release.reliable;
    answer.reliability =
      ends[0] <= 0 || error > fair * answer.unbiased ? "poor" : error > good * answer.unbiased ? "fair" : "good";
    return answer;
  }

  // The rows of all cells that the cap cut among the first ones of each unit; of several periods the sums, of their ends, too: no
  // interval of a sum is wider. Null where some period does not tell it, 0 where contributors sent reports.
  function cutOf(rows) {
    const cuts = rows.map((row) => row.cut);
    if (!cuts.every(known) || cuts.includes(0)) return cuts.includes(0) ? 0 : null;
    const sum = (at) => cuts.reduce((all, one) => all + one[at], 0), isBelow = cuts.some((one) => one.length < 4);
    return { first: Math.max(...cuts.map(([first]) => first)), isBelow, number: sum(1), lower: sum(2), upper: sum(3) };
  }

  // What the error of an answer covers and what not, as cards say it.
  function coverOf(table, answer, isPart, half = "") {
    const of = { counted: capital(table.counted), bound: shown(answer.rows_of_each, 0), unit: table.unit }, { cut } = answer;
    const noise = half ? [said("± %(half)s is the noise alone.", { half })] : [];
    if (!table.unit || cut === 0 || answer.basis === "known") return noise.join(" ");
    if (!cut) return [...noise, said("%(counted)s beyond %(bound)s of each %(unit)s are not counted; how many these are is not known.", of)].join(" ");
    const values = { ...of, first: cut.first, limit: answer.below, number: shown(cut.number, 0), lower: shown(cut.lower, 0), upper: shown(cut.upper, 0) };
    const capped = said(cut.isBelow
      ? "%(counted)s beyond %(bound)s of each %(unit)s are not counted: among the first %(first)s of each, their published figure is below %(limit)s."
      : cut.lower > 0
        ? "%(counted)s beyond %(bound)s of each %(unit)s are not counted: about %(number)s (%(lower)s to %(upper)s, 95 %%) among the first %(first)s of each."
        : "%(counted)s beyond %(bound)s of each %(unit)s are not counted: no cut rows detected among the first %(first)s of each; at most %(upper)s (95 %%).", values);
    const ofAll = isPart ? [said("This is said of all cells, not of these alone.")] : [];
    return kept([...noise, capped, ...ofAll].join(" ")).replace("± ", "±\u00a0");
  }

  const different = (values) => new Set(values.filter(known)).size;
  const days = (first, after) => Math.round((Date.parse(after) - Date.parse(first)) / 86400000);

  // The answer of dph_over for several periods, from their rows.
  function answerOver(rows, periods) {
    const every = (test) => rows.every(test), isReport = (row) => known(row.step);
    const isLinear = (row) => known(row.linear_variance);
    const hasBars = every((row) => row.has_bars), variances = rows.map((row) => row.linear_variance ?? row.cells * row.noise_variance);
    // Where periods have different noise, the widest draws count; the first of equals.
    const widest = rows.reduce((most, row) => (known(row.noise_variance) && !(row.noise_variance <= most.noise_variance) ? row : most), rows[0]);
    const row = {
      has_bars: hasBars, cells: rows.reduce((sum, one) => sum + one.cells, 0), noise_scale: widest.noise_scale,
      noise_variance: widest.noise_variance, step: every(isReport) ? Math.max(...rows.map((one) => one.step)) : null,
      slope: Math.max(...rows.map((one) => one.slope)), linear_variance: null,
    };
    const variance = hasBars ? exactSum(variances) : null;
    const scales = rows.map((one) => one.noise_scale).filter(known).sort();
    const isWeighted = rows.some((one) => isLinear(one) || (known(one.noise_scale) && one.noise_scale !== scales[scales.length - 1]));
    if (hasBars && isWeighted) row.linear_variance = variance;
    const isOneLaw = different(rows.map((one) => one.noise_scale)) + different(rows.map((one) => !isLinear(one))) <= 2 || every(isReport);
    const isMixed = rows.some(isReport) !== every(isReport);
    const reach = isOneLaw ? reachOf(row) : null;
    let half = reach ? reach.one : null;
    if (!known(half) && hasBars) {
      const draws = variance / row.noise_variance * (1 + 1e-9);
      const nested = isLinear(widest) ? lastUpTo(release.linear_widths, row.noise_scale, draws, 1) : lastUpTo(release.half_widths, row.noise_scale, draws, 3);
      half = known(nested) ? Math.sqrt(variance) * nested : null;
    }
    if (isMixed) half = null;
    const unbiased = hasBars ? exactSum(rows.map((one) => one.unbiased)) : null;
    const estimate = exactSum(rows.map((one) => one.estimate)), texts = release.notes, notes = [];
    const missing = days(periods[0][1], periods[periods.length - 1][2]) - periods.reduce((sum, one) => sum + days(one[1], one[2]), 0);
    if (missing > 0) notes.push(said(missing === 1 ? "%(number)s day between them is in no published period, and not in this sum" : "%(number)s days between them are in no published period, and not in this sum", { number: missing }));
    const isKnown = every((one) => one.is_known);
    if (isKnown) notes.push(said(texts.known));
    else if (!known(half)) notes.push(said(texts.no_interval));
    else if (Math.abs(estimate - unbiased) > half + 1e-6) notes.push(said(texts.smoothed));
    else if (estimate < 0) notes.push(said(texts.below));
    return {
      estimate, unbiased, cells: row.cells, noise_error: known(variance) ? Math.sqrt(variance) : null,
      ci_lower: known(half) ? unbiased - half : null, ci_upper: known(half) ? unbiased + half : null,
      basis: isKnown ? "known" : !known(half) ? "noise_only" : row.linear_variance === null && reach ? "unbiased" : "linear",
      note: notes.join("; ") || null, reliability: null, below: Math.max(...rows.map((one) => one.below ?? 0)) || null,
      rows_of_each: Math.max(...rows.map((one) => one.rows_of_each)), cut: cutOf(rows),
      whole_count: every((one) => known(one.whole_count)) ? exactSum(rows.map((one) => one.whole_count)) : null, whole_first: every((one) => one.whole_first),
    };
  }

  // The rule by which pages tell whether two counts differ: see `chance_of_persons.py`, which cards use. A macro's interval takes
  // persons to have one row each; this one allows for as many as the bound lets them have.
  function cautiousEnds(rows, unbiased) {
    const { sure, least } = release.chance, rowsOfEach = Math.max(...rows.map((row) => row.rows_of_each));
    const noise = rows.map(answerOf).map((answer) => (answer.ci_upper - answer.ci_lower) / 2);
    const chance = rowsOfEach * (Math.max(0, rows[0].unbiased) + Math.max(0, rows[1].unbiased) + least);
    const half = Math.sqrt(noise[0] ** 2 + noise[1] ** 2 + sure ** 2 * chance);
    return [unbiased - half, unbiased + half];
  }

  // The answer of dph_compare for two periods, from their rows: the later less the earlier one, by noise alone and with chance.
  function changeOf([one, two]) {
    const both = (test) => test(one) && test(two), isLinear = (row) => known(row.linear_variance);
    const hasOneScale = both((row) => known(row.noise_scale)) && one.noise_scale === two.noise_scale && isLinear(one) === isLinear(two);
    const apart = [one, two].map(reachOf), halfApart = apart[0] && apart[1] ? apart[0].two + apart[1].two : null;
    const isReport = both((row) => known(row.step));
    const together = {
      has_bars: both((row) => row.has_bars), cells: one.cells + two.cells, noise_scale: one.noise_scale, noise_variance: one.noise_variance,
      step: isReport ? Math.max(one.step, two.step) : null, slope: Math.max(one.slope, two.slope),
      linear_variance: both(isLinear) ? one.linear_variance + two.linear_variance : null,
    };
    const reach = hasOneScale || isReport ? reachOf(together) : null, half = reach ? reach.one : halfApart;
    const variances = [one, two].map((row) => row.linear_variance ?? (known(row.noise_variance) ? row.cells * row.noise_variance : null));
    const isKnown = both((row) => row.is_known);
    const hasBoth = both((row) => known(row.unbiased)), unbiased = hasBoth ? two.unbiased - one.unbiased : null;
    const chance = hasBoth ? Math.max(0, one.unbiased) + Math.max(0, two.unbiased) + 2 : null;
    const halfWithChance = known(half) ? Math.sqrt(half ** 2 + release.normal[0] ** 2 * chance) : null;
    const estimate = two.estimate - one.estimate, texts = release.notes;
    const ends = (reached) => (known(reached) && hasBoth ? [unbiased - reached, unbiased + reached] : [null, null]);
    const [lower, upper] = ends(half), [lowerWithChance, upperWithChance] = ends(halfWithChance);
    return {
      estimate, unbiased, cells: together.cells, noise_error: variances.every(known) ? Math.sqrt(variances[0] + variances[1]) : null,
      ci_lower: lower, ci_upper: upper, with_chance: [lowerWithChance, upperWithChance],
      basis: isKnown ? "known" : !known(halfApart) ? "noise_only" : isLinear(one) || isLinear(two) ? "linear" : "unbiased",
      note: isKnown ? said(texts.known) : !known(half) ? said(texts.no_interval) : Math.abs(estimate - unbiased) > half + 1e-6 ? said(texts.smoothed) : null,
      reliability: null, below: null, rows_of_each: Math.max(one.rows_of_each, two.rows_of_each), cut: cutOf([one, two]),
      cautious: hasBoth && known(half) ? cautiousEnds([one, two], unbiased) : [null, null],
    };
  }

  // The answer of dph_difference for two boxes of one period: the first less the second one, by noise alone and with chance. Cells
  // that lie in both cancel out.
  function differenceOf([one, two, both], cells, [first, second, common]) {
    const isReport = known(one.step), isNested = !isReport && known(one.linear_variance), crossed = (...pair) => covariance(cells, ...pair);
    const squares = [crossed(first, first, first), crossed(first, second, common), crossed(second, second, second)];
    // A count that is known has no noise.
    const isKnown = one.is_known && two.is_known;
    if (one.is_known) squares[0] = squares[1] = 0;
    if (two.is_known) squares[1] = squares[2] = 0;
    const variance = squares.every(known) ? Math.max(0, squares[0] - 2 * squares[1] + squares[2]) : null;
    const draws = known(variance) ? variance / one.noise_variance / (isNested ? 4 : 1) : null, isSame = known(draws) && draws < 1e-9 && !isKnown;
    let half = null;
    if (isReport) half = reachOf(one).two + reachOf(two).two;
    else if (one.has_bars && (isSame || isKnown)) half = 0;
    else if (one.has_bars && isNested) {
      const deviations = lastUpTo(release.linear_widths, one.noise_scale, draws * (1 + 1e-9), 1);
      half = known(deviations) ? deviations * Math.sqrt(variance) : null;
    } else if (one.has_bars) half = (halfWidths(one.noise_scale, draws - 1e-6) || { one: null }).one;
    const commonCells = both ? both.cells : 0, commonSum = both ? both.unbiased : 0, texts = release.notes;
    const alone = [one, two].map((row) => (row.cells > commonCells ? Math.max(0, row.unbiased - commonSum) : null));
    const chance = alone.reduce((sum, some) => sum + (some === null ? 0 : some + 1), 0);
    const estimate = one.estimate - two.estimate, unbiased = known(one.unbiased) && known(two.unbiased) ? one.unbiased - two.unbiased : null;
    const widened = (factor, ofChance) => (!known(half) || isSame ? half : Math.sqrt(half ** 2 + factor ** 2 * ofChance));
    const ends = (reached) => (known(reached) && known(unbiased) ? [unbiased - reached, unbiased + reached] : [null, null]);
    const [lower, upper] = ends(half), error = variance ?? one.linear_variance + two.linear_variance;
    const people = one.rows_of_each * (alone.reduce((sum, some) => sum + (some ?? 0), 0) + release.chance.least);
    return {
      estimate, unbiased, cells: one.cells + two.cells, noise_error: one.has_bars ? Math.sqrt(error) : null,
      ci_lower: lower, ci_upper: upper, with_chance: ends(widened(release.normal[0], chance)),
      basis: isKnown ? "known" : !known(half) ? "noise_only" : isNested || isReport ? "linear" : "unbiased",
      note: isKnown ? said(texts.known) : !known(half) ? said(texts.no_interval) : Math.abs(estimate - unbiased) > half + 1e-6 ? said(texts.smoothed) : null,
      reliability: null, below: null, rows_of_each: one.rows_of_each, cut: cutOf([one]),
      cautious: ends(widened(release.chance.sure, people)),
    };
  }

  // -- files -----------------------------------------------------------------------------------------------------------------

  // A list, or doubles in base 64; behind ~ they are compressed, in base 85, the first bytes of all before the second ones.
  async function unpacked(column) {
    if (typeof column !== "string") return column;
    const isSmall = column.startsWith("~");
    let bytes = isSmall ? bytesOf(column) : Uint8Array.from(atob(column), (letter) => letter.charCodeAt(0));
    if (isSmall) {
      const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
      const apart = new Uint8Array(await new Response(stream).arrayBuffer()), many = apart.length / 8;
      bytes = new Uint8Array(apart.length);
      for (let byte = 0; byte < 8; byte += 1) for (let at = 0; at < many; at += 1) bytes[8 * at + byte] = apart[byte * many + at];
    }
    const view = new DataView(bytes.buffer);
    return Array.from({ length: bytes.length / 8 }, (_, at) => view.getFloat64(8 * at, true));
  }

  const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";
  const digitOf = new Uint8Array(128);
  [...DIGITS].forEach((letter, value) => { digitOf[letter.charCodeAt(0)] = value; });

  // Four bytes for five digits to the base of 85, and fewer for the last ones; the first letter is a mark.
  function bytesOf(text) {
    const many = text.length - 1, bytes = new Uint8Array(4 * Math.ceil(many / 5));
    for (let from = 0, to = 0; from < many; from += 5, to += 4) {
      let word = 0;
      for (let at = from; at < from + 5; at += 1) word = word * 85 + (at < many ? digitOf[text.charCodeAt(at + 1)] : 84);
      bytes[to] = word >>> 24;
      bytes[to + 1] = word >>> 16;
      bytes[to + 2] = word >>> 8;
      bytes[to + 3] = word;
    }
    return bytes.subarray(0, bytes.length - ((5 - (many % 5)) % 5));
  }

  async function opened(cells) {
    if (cells.estimate === undefined) return { ...cells, tiles: new Map(), isOpened: true };
    const unbiased = await unpacked(cells.unbiased), estimate = await besides(cells.estimate, unbiased), whole = await besides(cells.whole, unbiased);
    return { ...cells, unbiased, estimate, whole, groups: await unpacked(cells.groups), isOpened: true };
  }

  // Estimates and whole counts stand by themselves, or by those places where they are not the unbiased ones.
  async function besides(estimate, unbiased) {
    if (estimate === null || estimate.are === undefined) return unpacked(estimate);
    const found = unbiased.slice(), are = await unpacked(estimate.are);
    estimate.at.forEach((place, number) => {
      found[place] = are[number];
    });
    return found;
  }

  const keyOf = (...parts) => JSON.stringify(parts);
  const fileOf = (table, period, tile) => `${place}${table.table ? `${table.table}/` : ""}period=${period}/cells${tile === undefined ? "" : `-${tile}`}.js`;

  // Runs a file beside this one, and gives what it handed over: `taken` finds it, and `made` opens it.
  function run(address, mark, taken, made) {
    return new Promise((resolve, reject) => {
      const script = document.createElement("script");
      const fail = () => reject(new Refused(said("The numbers have changed since this page was opened. Load the page again.")));
      script.src = `${address}?${mark}`;
      script.onload = () => {
        const found = taken();
        script.remove();
        if (!found || found.mark !== mark) fail();
        else made(found).then(resolve, reject);
      };
      script.onerror = () => reject(new Refused(said("A file of this page is missing. Copy the whole folder of the release, with all that lies in it.")));
      document.head.append(script);
    });
  }

  async function load(table, [period, , , , mark, , , , tiling], asked) {
    const key = keyOf(table.name, period), there = loaded.get(key);
    let cells = there;
    if (!there || there.mark !== mark || !there.isOpened) {
      cells = await run(fileOf(table, period), mark, () => loaded.get(key), opened);
      loaded.set(key, cells);
    }
    if (!tiling) return cells;
    const missing = tilesOf(table, tiling, asked).filter((number) => !cells.tiles.has(number));
    await Promise.all(missing.map(async (number) => {
      const of = keyOf(table.name, period, number);
      const tile = await run(fileOf(table, period, number), mark, () => loaded.get(of), (found) => openedTile(table, tiling[0], number, found));
      loaded.delete(of);
      cells.tiles.set(number, tile);
    }));
    return cells;
  }

  // What lies before each place of a tile, for both columns.
  async function openedTile(table, parts, number, tile) {
    const at = [], sides = [];
    let rest = number;
    for (let axis = parts.length - 1; axis >= 0; axis -= 1) {
      const { size } = table.axes[axis], side = Math.ceil(size / parts[axis]);
      at.unshift(rest % parts[axis]);
      sides.unshift(Math.min(side, size - at[0] * side) + (at[0] ? 1 : 0));
      rest = Math.floor(rest / parts[axis]);
    }
    const made = async (values, before) => values && accumulated(values, await Promise.all(before.map(unpacked)), sides, at.map((one) => one > 0));
    const values = await unpacked(tile.unbiased), unbiased = await made(values, tile.before.unbiased);
    const estimate = tile.before.estimate ? await made(await besides(tile.estimate, values), tile.before.estimate) : unbiased;
    const whole = tile.whole && await made(await besides(tile.whole, values), tile.before.whole);
    return { unbiased, estimate, whole };
  }

  class Refused extends Error {}

  const tilesOf = (table, tiling, asked) => [...new Set(asked.flatMap((along) => neededTiles(table, tiling, along)))];

  // The bytes that a question to a period loads, at most; `asked` are the positions of all that is summed.
  function weightOf(table, period, asked) {
    const [parts, all, largest] = period[8] || [];
    return period[5] + (parts ? Math.min(all, tilesOf(table, period[8], asked).length * largest) : 0);
  }

  // The positions of boxes; of two also those that lie in both.
  function positionsOfAll(table, boxes) {
    const asked = boxes.map((box) => positionsIn(table, box));
    if (asked.length < 2) return asked;
    const common = [...asked[0]].map(([name, positions]) => [name, positions.filter((at) => asked[1].get(name).includes(at))]);
    return [...asked, new Map(common)];
  }

  // The table of the family that tells the least noise where these axes and levels have conditions.
  function bestTable(table, period, boxes) {
    const names = JSON.stringify([...new Set(boxes.flatMap((box) => [...box.keys()]))].sort());
    const better = table.better[period[7]].find(([one]) => JSON.stringify(one) === names);
    return better ? release.tables.find((one) => one.name === better[1]) : table;
  }

  const quoted = (text) => `'${text.replaceAll("'", "''")}'`;
  const argumentsFor = (table, box) => [quoted(`r.${table.name}`), quoted(JSON.stringify(Object.fromEntries(box)))];

  function callFor(table, box, first, last, isOne) {
    const [name, conditions] = argumentsFor(table, box);
    const when = first === "all" ? "" : `, period := ${quoted(first)}`;
    const sum = table.amount ? `\nFROM r.dph_sum(${name}, ${quoted(table.amount)}, box := ${conditions}${when});` : "";
    if (isOne) return `FROM r.dph_box(${name}, ${conditions}${when});${sum}`;
    return `FROM r.dph_over(${name}, ${quoted(first)}, ${quoted(last)}, ${conditions});`;
  }

  function compareCall(table, box, first, last) {
    const [name, conditions] = argumentsFor(table, box);
    return `FROM r.dph_compare(${name}, ${quoted(first)}, ${quoted(last)}, ${conditions}, with_chance := true);`;
  }

  function differenceCall(table, box, other, period) {
    const [name, conditions] = argumentsFor(table, box), [, others] = argumentsFor(table, other);
    return `FROM r.dph_difference(${name}, ${conditions}, ${others}${period === "all" ? "" : `, period := ${quoted(period)}`}, with_chance := true);`;
  }

  // The sum of a box over all periods from the first to the last, and of each period; or its change from the first to the last; or,
  // in the last period, that sum less the sum of another box.
  async function ask(name, box, first, last, isChange = false, other = null) {
    const table = release.tables.find((one) => one.name === name), boxes = other ? [box, other] : [box];
    const isAsked = ([key]) => (other ? key === last : isChange ? key === first || key === last : key >= first && key <= last);
    const periods = table.periods.filter(isAsked);
    const call = other ? differenceCall(table, box, other, last) : isChange ? compareCall(table, box, first, last) : callFor(table, box, first, last, periods.length === 1);
    const unanswered = (why) => ({ call, why });
    if (table.cells > release.most.cells) return unanswered(said("this table has %(number)s cells", { number: shown(table.cells, 0) }));
    if (table.axes === null) return unanswered(said("the axes of this table have too many values"));
    if (periods.length > release.most.files) return unanswered(said("these are %(number)s periods", { number: shown(periods.length, 0) }));
    const parts = periods.map((period) => {
      const best = bestTable(table, period, boxes);
      return [best, best && best.periods.find(([key]) => key === period[0])];
    });
    const hasFile = ([best, period]) => best && best.axes !== null && period && period[5] !== null;
    if (!parts.every(hasFile)) return unanswered(said("another table of this family tells less noise, and is too large"));
    if (!parts.every(([, period]) => period[6])) return unanswered(said("the axes were others in one of these periods"));
    const asked = parts.map(([best]) => positionsOfAll(best, boxes));
    const bytes = parts.reduce((sum, [best, period], at) => sum + weightOf(best, period, asked[at]), weight);
    if (bytes > release.most.loaded) return unanswered(said("%(number)s megabytes would be loaded", { number: shown(bytes / 1e6, 1) }));
    const cells = await Promise.all(parts.map(([best, period], at) => load(best, period, asked[at])));
    const sumAt = (at, along) => summed(parts[at][0], cells[at], along, parts[at][1][8]);
    const rows = other ? asked[0].map((along) => sumAt(0, along)) : cells.map((_, at) => sumAt(at, asked[at][0]));
    if (rows.some((row, at) => row === null && !(other && at === 2))) throw new Refused(said("No cell has all that you chose."));
    if (other) return { call, sum: differenceOf(rows, cells[0], asked[0]), periods: [], choices: rows.slice(0, 2).map(answerOf) };
    const answers = rows.map(answerOf);
    const sum = isChange ? changeOf(rows) : rows.length === 1 ? answers[0] : answerOver(rows, periods);
    return { call, sum, periods: rows.length === 1 ? [] : periods.map((period, at) => [period, answers[at]]) };
  }

  // -- the page --------------------------------------------------------------------------------------------------------------

  function element(tag, properties = {}, ...inside) {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...inside);
    return made;
  }

  const daysOf = ([key, first, after]) => {
    if (first) return daysBetween(first, after);
    return key === "all" ? said("all records") : ofFirst(dayForm.format(atNoon(key)));
  };

  function select(label, options, chosen, id) {
    const made = element("select", { id });
    options.forEach((text, at) => made.append(element("option", { value: at, selected: at === chosen }, text)));
    return [element("label", {}, element("span", {}, label), made), made];
  }

  // Bins from one to another as one range in words.
  function rangeWords(axis, first, last) {
    const isDays = typeof (axis.lower[first] ?? axis.upper[last]) === "string";
    if (first === last || (isDays && !(axis.lower[first] && axis.upper[last]))) return axis.labels[first];
    if (isDays) return daysBetween(axis.lower[first], axis.upper[last]);
    if (!axis.spans) return said("%(first)s, up to %(last)s", { first: axis.labels[first], last: axis.labels[last] });
    const { form, closed, low, high, below, above } = axis.spans, isLast = axis.upper[last] === axis.upper[axis.labels.length - 1 - axis.other];
    if (axis.lower[first] === null) return axis.upper[last] === null ? said("all") : below[last];
    if (axis.upper[last] === null) return above[first];
    return (isLast ? closed : form).replace("%(low)s", low[first]).replace("%(high)s", high[last]);
  }

  // What the two lists of ends call the bins of an axis, those behind `other` left out.
  function endsOf(axis) {
    const bins = axis.labels.slice(0, axis.other ? -1 : undefined), dayBefore = (day) => new Date(atNoon(day).getTime() - 86400000);
    const isDays = [...axis.lower, ...axis.upper].some((end) => typeof end === "string");
    const from = (at) => (isDays ? axis.lower[at] && ofFirst(dayForm.format(atNoon(axis.lower[at]))) : axis.spans.from[at]);
    const to = (at) => (isDays ? axis.upper[at] && ofFirst(dayForm.format(dayBefore(axis.upper[at]))) : axis.spans.to[at]);
    if (!isDays && !axis.spans) return [bins, bins];
    return [bins.map((_, at) => from(at) ?? said("no lower limit")), bins.map((_, at) => to(at) ?? said("no upper limit"))];
  }

  // A line that says what is wrong with the choices above it; no list is changed behind the reader's back.
  function complaint() {
    const made = element("p", { className: "wrong" });
    made.setAttribute("role", "status");
    return made;
  }

  // Two lists of ends; the function gives the condition, null for none, and its words.
  function rangeField(axis, id) {
    const [lows, highs] = endsOf(axis), wrong = complaint();
    const [fromLabel, from] = select(said("from"), [said("all"), ...lows], 0, `${id}-from`);
    const [toLabel, to] = select(said("to"), ["", ...highs], 0, `${id}-to`);
    to.disabled = true;
    function check() {
      const isCrossed = from.value !== "0" && Number(to.value) < Number(from.value);
      wrong.textContent = isCrossed ? said("%(name)s: “to” lies below “from”. Choose another end.", { name: axis.called }) : "";
    }
    from.addEventListener("change", () => {
      const isAll = from.value === "0";
      if (isAll) to.value = "0";
      else if (to.disabled) to.value = String(highs.length);
      to.disabled = isAll;
      to.options[0].hidden = !isAll;
      check();
    });
    to.addEventListener("change", check);
    const field = element("fieldset", {}, element("legend", {}, axis.called), element("div", { className: "pair" }, fromLabel, toLabel), wrong);
    return [field, () => {
      if (from.value === "0") return null;
      if (wrong.textContent) throw new Refused(wrong.textContent);
      const first = Number(from.value) - 1, last = Number(to.value) - 1;
      return { name: axis.name, called: axis.called, condition: [axis.lower[first], axis.upper[last]], words: rangeWords(axis, first, last) };
    }];
  }

  const MOST_LISTED = 200, FEW = 12;

  // A list of boxes to tick; of many values those that hold what was typed.
  function choiceField(name, called, values, labels, id) {
    const chosen = new Set(), list = element("div", { className: "ticks" }), many = values.length > FEW;
    const state = element("p", { className: "note" });
    const find = element("input", { type: "search", id: `${id}-find`, autocomplete: "off" });
    function show() {
      const wanted = find.value.trim().toLowerCase();
      const held = [...values.keys()].filter((at) => chosen.has(at) || labels[at].toLowerCase().includes(wanted));
      list.replaceChildren(...held.slice(0, MOST_LISTED).map((at) => {
        const tick = element("input", { type: "checkbox", checked: chosen.has(at) });
        tick.addEventListener("change", () => { if (tick.checked) chosen.add(at); else chosen.delete(at); say(held.length); });
        const more = values[at] === null ? [" ", element("span", { className: "kind" }, said("(missing, unreadable or undeclared)"))] : [];
        return element("label", {}, tick, element("span", {}, element("bdi", {}, labels[at]), ...more));
      }));
      say(held.length);
    }
    function say(held) {
      const none = chosen.size ? said("%(number)s chosen", { number: shown(chosen.size, 0) }) : said("none chosen: all count");
      const listed = { most: MOST_LISTED, all: shown(held, 0) };
      state.textContent = held > MOST_LISTED ? `${none}; ${said("the first %(most)s of %(all)s are listed", listed)}` : none;
    }
    find.addEventListener("input", show);
    find.addEventListener("keydown", (event) => { if (event.key === "Enter") event.preventDefault(); });
    if (many) list.classList.add("long");
    show();
    const field = element("fieldset", {}, element("legend", {}, called));
    if (many) field.append(element("label", {}, element("span", {}, said("find")), find));
    field.append(list, state);
    return [field, () => {
      if (!chosen.size) return null;
      const places = [...chosen].sort((one, other) => one - other), few = places.slice(0, FEW).map((at) => labels[at]);
      const isAll = places.length <= FEW && few.length > 1, end = isAll ? said(" or ") + few.pop() : "";
      const words = few.join(", ") + end + (places.length > FEW ? said(" and %(number)s more", { number: places.length - FEW }) : "");
      return { name, called, condition: places.map((at) => values[at]), words };
    }];
  }

  function fieldsOf(table, prefix = "axis") {
    const fields = [];
    (table.axes || []).forEach((axis, number) => {
      if (axis.binned) {
        fields.push(rangeField(axis, `${prefix}-${number}`));
        return;
      }
      fields.push(choiceField(axis.name, axis.called, axis.values, axis.labels, `${prefix}-${number}`));
      axis.levels.forEach(([name, values], level) => {
        const groups = [...new Set(values)];
        fields.push(choiceField(name, name, groups, groups.map((one) => one ?? said("other")), `${prefix}-${number}-${level}`));
      });
    });
    return fields;
  }

  // The question: its kind and its periods. The function gives the first and the last period, and the kind: sum, change or choices.
  function periodField(table, whenKind) {
    const periods = table.periods, last = periods.length - 1, isOne = last === 0;
    const words = periods.map(daysOf);
    const [fromLabel, from] = select("", words, last, "period-from"), [toLabel, to] = select("", words, last, "period-to");
    const radio = (id, checked = false) => element("input", { type: "radio", name: "question", id: `question-${id}`, checked });
    const sum = radio("sum", true), compare = radio("change"), choices = radio("choices");
    const tick = (input, text) => element("label", {}, input, element("span", {}, text));
    const kind = element("fieldset", {}, element("legend", {}, said("What do you want to know?")),
      tick(sum, isOne ? said("a sum") : said("a sum, of one or more periods")),
      ...(isOne ? [] : [tick(compare, said("whether two periods differ, and by how much"))]),
      ...((table.axes || []).length ? [tick(choices, said("whether two choices differ, and by how much"))] : []));
    const wrong = complaint(), kindNow = () => (choices.checked ? "choices" : compare.checked ? "change" : "sum");
    function check() {
      const isChange = compare.checked, space = Number(to.value) - Number(from.value);
      wrong.textContent = choices.checked ? ""
        : isChange && space === 0 ? said("Choose two different periods.")
          : isChange && space < 0 ? said("The later period lies before the earlier one. Choose another.")
            : space < 0 ? said("The last period lies before the first one. Choose another.") : "";
    }
    function relabel() {
      const isChange = compare.checked;
      fromLabel.hidden = choices.checked;
      fromLabel.firstChild.textContent = isChange ? said("earlier") : said("first");
      toLabel.firstChild.textContent = choices.checked ? "" : isChange ? said("later") : said("last");
      to.ariaLabel = choices.checked ? said("Period") : null;
      check();
      whenKind(kindNow());
    }
    let isChosen = false; // whether the reader chose a period; until then a comparison begins with the newest two
    for (const one of [from, to]) one.addEventListener("change", () => { isChosen = true; check(); });
    for (const one of [sum, compare, choices]) one.addEventListener("change", () => {
      if (!isChosen) from.value = String(compare.checked ? last - 1 : last);
      relabel();
    });
    relabel();
    const field = element("fieldset", {}, element("legend", {}, said("Period")), element("div", { className: "pair" }, fromLabel, toLabel), wrong);
    return [isOne ? (kind.contains(choices) ? [kind] : []) : [kind, field], () => {
      if (wrong.textContent) throw new Refused(wrong.textContent);
      return [periods[choices.checked ? Number(to.value) : Number(from.value)], periods[Number(to.value)], kindNow()];
    }];
  }

  // Terms and what is said of them; `add` takes one more.
  function factsOf() {
    const facts = element("dl", { className: "facts" });
    return [facts, (term, text) => facts.append(element("dt", {}, term), element("dd", {}, text))];
  }

  // What holds for sums and changes alike: whose rows were counted, and of which revisions.
  function addSource(add, table, periods, answer, isOverPeriods) {
    const { counted, unit } = table, number = shown(answer.rows_of_each, 0);
    if (unit && answer.basis !== "known") add(said("Counted"), answer.rows_of_each === 1
      ? said("at most one row of each %(unit)s is counted in a period", { unit })
      : said("at most %(number)s %(counted)s of each %(unit)s are counted in a period", { number, unit, counted }));
    if (unit && isOverPeriods) add(said("Periods"), said("%(counted)s, not people: the same %(unit)s may be in several of these periods", { counted, unit }));
    const revised = periods.filter((period) => period[3] > 1).map((period) => said("%(days)s: revision %(number)s", { days: daysOf(period), number: period[3] }));
    if (revised.length) add(said("Revised"), revised.slice(0, FEW).join("; ") + (revised.length > FEW ? said(" and %(number)s more", { number: revised.length - FEW }) : ""));
    add(said("Cells"), said("%(number)s: the parts of the published table that were added up", { number: shown(answer.cells, 0) }));
  }

  // The word, and half the interval as a part of the number.
  function reliabilityOf(answer) {
    const part = (50 * (answer.ci_upper - answer.ci_lower)) / answer.unbiased;
    const isShown = part >= 0.05 && part < 1000 && !told(answer).isHidden;
    return said(answer.reliability) + (isShown ? ` (±\u00a0${shown(part, part < 9.95 ? 1 : 0)}\u00a0%)` : "");
  }

  function factList(found, numbers, table, periods) {
    const [facts, add] = factsOf(), answer = found.sum;
    if (numbers.ends && numbers.sentence === numbers.number) add(said("95 %% interval").replace(" %", "\u00a0%"), numbers.ends);
    addSource(add, table, periods, answer, periods.length > 1);
    const meaning = release.legend[answer.reliability];
    if (answer.reliability) add(said("Reliability"), reliabilityOf(answer) + (meaning ? `: ${said(meaning)}` : ""));
    if (numbers.whole && answer.basis !== "known") add(said("Whole number"), answer.whole_first
      ? said("stands first: in this table most cells cannot be told from empty ones, or totals are known. It is never negative, and has no interval of its own")
      : said("%(number)s: never negative; it has no interval of its own", { number: numbers.whole }));
    if (answer.note) add(said("Note"), answer.note);
    return facts;
  }

  // A row for each period, or for each of two choices.
  function answerTable(answers, head, label) {
    const hasWhole = answers.some(([, answer]) => told(answer).whole), numeric = (text) => element("td", { className: "n" }, text);
    const rows = answers.map(([words, answer]) => element("tr", {},
      element("th", { scope: "row" }, words), numeric(told(answer).number), ...(hasWhole ? [numeric(told(answer).whole || "–")] : []),
      element("td", {}, answer.reliability ? reliabilityOf(answer) : "–")));
    const titles = [head, said("Sum, 95 %%").replace(" %", "\u00a0%"), ...(hasWhole ? [said("Whole number")] : []), said("Reliability")];
    const heads = titles.map((text, at) => element("th", { scope: "col", className: at > 0 && at < titles.length - 1 ? "n" : "" }, text));
    const table = element("table", {}, element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...rows));
    const around = element("div", { className: "scroll", tabIndex: 0 }, table);
    around.setAttribute("role", "region");
    around.setAttribute("aria-label", label);
    return around;
  }

  const periodTable = (periods) => answerTable(periods.map(([period, answer]) => [daysOf(period), answer]), said("Period"), said("Table of the chosen periods"));

  function callText(call, label = said("The same question in SQL")) {
    const text = element("pre", { tabIndex: 0 }, element("code", {}, `ATTACH 'catalog.duckdb' AS r (READ_ONLY);\n${call}`));
    text.setAttribute("role", "region");
    text.setAttribute("aria-label", label);
    return text;
  }

  const choiceInWords = (conditions) => (conditions.length ? conditions.map((one) => `${one.called} ${one.words}`).join("; ") : said("all"));

  // What was asked, in words that stand by themselves.
  function inWords(table, choice, when) {
    return `${capital(table.counted)}${said("%(what)s: %(rest)s", { what: "", rest: choice })}; ${when}`;
  }

  function whenOf(table, first, last, isChange) {
    if (first === last) return daysOf(first);
    if (isChange) return said("%(later)s compared with %(earlier)s", { later: daysOf(last), earlier: daysOf(first) });
    const many = table.periods.indexOf(last) - table.periods.indexOf(first) + 1;
    const days = first[1] && last[2] ? daysBetween(first[1], last[2]) : `${daysOf(first)} – ${daysOf(last)}`;
    return said("%(days)s (%(number)s periods)", { days, number: shown(many, 0) });
  }

  // The change in words: whether noise, or noise and chance, can explain it.
  function changeParts(found, table, periods) {
    const [one, two] = found.choices || found.periods.map(([, answer]) => answer), change = found.sum, hidden = [one, two].find((answer) => told(answer).isHidden);
    if (hidden) return [element("p", { className: "answer", tabIndex: -1 }, said("No change is told beside a figure below %(limit)s.", { limit: hidden.below }))];
    if (!known(change.ci_lower)) return [element("p", { className: "answer", tabIndex: -1 }, signed(change, change.estimate)), element("p", {}, change.note)];
    const [low, high] = change.cautious, isOut = (from, to) => from > 0 || to < 0, sign = (value) => signed(change, value);
    const size = (value) => shown(Math.abs(value), decimalsOf(change.noise_error));
    const verdict = isOut(low, high)
      ? change.unbiased > 0 ? said("Yes, more: noise and chance do not explain a difference of this size.") : said("Yes, fewer: noise and chance do not explain a difference of this size.")
      : isOut(change.ci_lower, change.ci_upper)
        ? said(change.unbiased > 0
          ? "%(number)s more were counted (%(low)s to %(high)s). Counts differ as much by chance (%(least)s to %(most)s), so this alone is no trend."
          : "%(number)s fewer were counted (%(low)s to %(high)s). Counts differ as much by chance (%(least)s to %(most)s), so this alone is no trend.", {
          ...{ number: size(change.unbiased), low: size(change.unbiased > 0 ? change.ci_lower : change.ci_upper) },
          ...{ high: size(change.unbiased > 0 ? change.ci_upper : change.ci_lower), least: sign(low), most: sign(high) },
        })
        : said("No clear difference: noise alone can explain a difference of this size.");
    const number = said("%(number)s, between %(low)s and %(high)s by noise and chance, with 95 %% confidence", {
      number: sign(change.unbiased), low: sign(low), high: sign(high),
    });
    const [facts, add] = factsOf();
    add(said("By noise alone"), said("%(number)s, between %(low)s and %(high)s with 95 %% confidence", {
      number: sign(change.unbiased), low: sign(change.ci_lower), high: sign(change.ci_upper),
    }).replaceAll(" %", "\u00a0%"));
    add(said("Noise"), said("was added on purpose, to protect people"));
    if (found.choices) add(said("Chance"), change.rows_of_each > 1
      ? said("such counts vary by themselves; this allows for people who come independently of each other, each with up to %(number)s rows in a period", { number: shown(change.rows_of_each, 0) })
      : said("such counts vary by themselves; this allows for people who come independently of each other"));
    else add(said("Chance"), change.rows_of_each > 1
      ? said("such counts vary by themselves from one period to the next; this allows for people who come independently of each other, each with up to %(number)s rows in a period", { number: shown(change.rows_of_each, 0) })
      : said("such counts vary by themselves from one period to the next; this allows for people who come independently of each other"));
    addSource(add, table, periods, change, false);
    if (change.note) add(said("Note"), change.note);
    return [element("p", { className: "answer", tabIndex: -1 }, element("strong", { className: "verdict" }, kept(verdict)), " ", element("span", { className: "number" }, kept(number))), facts];
  }

  // A change with its sign.
  function signed(change, value) {
    const text = shown(value, decimalsOf(change.noise_error));
    return value > 0 && /[1-9]/.test(text) ? `+${text}` : text;
  }

  // The answer with what its error covers, its revision and its source, to copy.
  function copyButton(answer, words, cover, periods) {
    const title = document.querySelector("h1").textContent, address = location.protocol.startsWith("http") ? ` ${location.href.split("#")[0]}` : "";
    const button = element("button", { type: "button", className: "copy" }, said("Copy this answer as a sentence"));
    button.onclick = async () => {
      const revised = (period) => said("%(days)s: revision %(number)s", { days: daysOf(period), number: period[3] });
      const revision = periods.length === 1 ? said("revision %(number)s", { number: periods[0][3] }) : periods.filter((one) => one[3] > 1).slice(0, FEW).map(revised).join("; ");
      const source = [page.publisher, title, revision].filter(Boolean).join(", ");
      const text = [`${words}: ${answer.replace(/\.$/, "")} (${source}).`, cover, page.notice, address.trim()].filter(Boolean).join(" ").replaceAll("\u2009", " ");
      try {
        await navigator.clipboard.writeText(text);
        button.textContent = said("Copied");
      } catch {
        button.replaceWith(element("p", { className: "copied" }, text));
      }
    };
    return button;
  }

  function result(found, words, kind, table, periods, choices, isPart) {
    const about = element("p", { className: "asked" }, words);
    if (!found.sum) {
      const why = element("p", { tabIndex: -1 }, said("This page cannot answer that: %(why)s. Ask it in SQL, with catalog.duckdb from the first page:", { why: found.why }));
      return [why, about, callText(found.call)];
    }
    const sql = element("details", {}, element("summary", {}, said("The same question in SQL")), callText(found.call));
    const notice = page.notice ? [element("p", {}, element("strong", {}, element("bdi", {}, page.notice)))] : [];
    const alone = element("p", { className: "kind" }, said("Do not add up the intervals of two answers: ask for the sum."));
    if (kind !== "sum") {
      const [answer, ...rest] = changeParts(found, table, periods);
      const each = found.choices ? answerTable(found.choices.map((one, at) => [choices[at], one]), said("Choice"), said("Table of both choices")) : periodTable(found.periods);
      const cover = coverOf(table, found.sum, isPart);
      return [answer, about, ...notice, element("p", {}, cover), ...rest, each, alone, copyButton(answer.textContent, words, cover, periods), sql];
    }
    const numbers = told(found.sum), more = found.periods.length ? [periodTable(found.periods)] : [];
    const isWholeFirst = numbers.whole && found.sum.whole_first && found.sum.basis !== "known";
    const answer = element("p", { className: "answer", tabIndex: -1 }, ...(isWholeFirst
      ? [element("strong", { className: "verdict" }, numbers.whole), " ", element("span", { className: "number" }, kept(said("as a whole number; the estimate is %(number)s", { number: numbers.sentence })))]
      : [numbers.sentence]));
    const cover = coverOf(table, found.sum, isPart, numbers.half);
    return [answer, about, ...notice, element("p", {}, cover), factList(found, numbers, table, periods), ...more, alone, copyButton(answer.textContent, words, cover, periods), sql];
  }

  // Leads the reader, and whoever reads aloud, to the answer.
  function show(answer) {
    answer.focus({ preventScroll: true });
    const isStill = matchMedia("(prefers-reduced-motion: reduce)").matches;
    answer.scrollIntoView({ behavior: isStill ? "instant" : "smooth", block: "start" });
  }

  // The form of one table; the first field, if there are several tables, chooses another.
  function build(form, output, table) {
    const fields = fieldsOf(table), otherFields = fieldsOf(table, "other"), before = [];
    const group = (id, of, text) => {
      const heading = element("p", { className: "which", id: `${id}-heading` }, text);
      const made = element("div", { id }, heading, element("div", { className: "axes" }, ...of.map(([field]) => field)));
      made.setAttribute("role", "group");
      made.setAttribute("aria-labelledby", heading.id);
      return made;
    };
    const axes = group("choice", fields, said("First choice")), others = group("other-choice", otherFields, said("Second choice"));
    const [periods, chosenPeriods] = periodField(table, (kind) => {
      others.hidden = axes.firstChild.hidden = kind !== "choices";
    });
    if (release.tables.length > 1) {
      const names = release.tables.map((one) => one.table || one.name), at = release.tables.indexOf(table);
      const [label, tables] = select(said("Table"), names, at, "table");
      tables.addEventListener("change", () => {
        output.replaceChildren();
        output.classList.remove("stale");
        build(form, output, release.tables[Number(tables.value)]);
        document.getElementById("table").focus();
      });
      before.push(element("div", { className: "pair" }, label));
    }
    const button = element("button", { type: "submit" }, said("Show the answer"));
    const anew = element("button", { type: "button", className: "anew" }, said("Start over"));
    anew.onclick = () => {
      asked += 1;
      output.replaceChildren();
      output.classList.remove("stale");
      output.setAttribute("aria-busy", "false");
      build(form, output, release.tables[0]);
      form.querySelector("select,input").focus();
    };
    form.replaceChildren(...before, ...periods, axes, others, element("div", { className: "buttons" }, button, anew));
    form.oninput = (event) => {
      if (!output.firstChild || event.target.type === "search" || output.classList.contains("stale")) return;
      output.classList.add("stale");
      output.prepend(element("p", { className: "changed" }, said("You have changed the question: this is still the answer to the one before.")));
    };
    form.onsubmit = async (event) => {
      event.preventDefault();
      const number = (asked += 1);
      output.setAttribute("aria-busy", "true");
      let shownNow;
      try {
        const conditionsOf = (asked) => asked.map(([, read]) => read()).filter((one) => one !== null);
        const conditions = conditionsOf(fields), [first, last, kind] = chosenPeriods(), isChoices = kind === "choices";
        const sides = [conditions, ...(isChoices ? [conditionsOf(otherFields)] : [])], choices = sides.map(choiceInWords);
        const boxes = sides.map((conditions) => new Map(conditions.map((one) => [one.name, one.condition])));
        if (isChoices && JSON.stringify([...boxes[0]]) === JSON.stringify([...boxes[1]])) throw new Refused(said("Both choices are the same. Choose another in one of them."));
        const when = whenOf(table, first, last, kind === "change");
        const choice = isChoices ? said("%(later)s compared with %(earlier)s", { later: choices[0], earlier: choices[1] }) : choices[0];
        const words = inWords(table, choice, when);
        const chosen = kind === "change" ? [first, last] : table.periods.slice(table.periods.indexOf(first), table.periods.indexOf(last) + 1);
        shownNow = result(await ask(table.name, boxes[0], first[0], last[0], kind === "change", boxes[1]), words, kind, table, chosen, choices, sides.some((side) => side.length > 0));
      } catch (error) {
        shownNow = [element("p", { tabIndex: -1 }, error instanceof Refused ? error.message : said("The sum could not be worked out (%(why)s).", { why: error.message }))];
      }
      if (number !== asked) return;
      output.classList.remove("stale");
      output.replaceChildren(...shownNow);
      output.setAttribute("aria-busy", "false");
      show(output.firstChild);
    };
  }

  return {
    release(head, content) {
      const form = document.getElementById("picker"), script = document.currentScript;
      place = script.src.replace(/release\.js(\?.*)?$/, "");
      weight = Number(form.dataset.weight);
      page = JSON.parse(document.getElementById("picker-words").textContent);
      release = content;
      if (release.tables.length) build(form, document.getElementById("picked"), release.tables[0]);
    },
    cells(head, content) {
      if (!head.made_from) return;
      loaded.set(keyOf(head.release, head.period), { ...content, mark: head.made_from.slice(0, 12) });
    },
    tile(head, content) {
      loaded.set(keyOf(head.release, head.period, head.tile), { ...content, mark: head.made_from.slice(0, 12) });
    },
    ask: (name, conditions, first, last, isChange, others) => ask(name, new Map(conditions), first, last, isChange, others && new Map(others)),
    told,
  };
})();
