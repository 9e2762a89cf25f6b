// Small parts of pages, for the report and for the live page: elements, durations, sizes, badges, times.
function make(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) made.setAttribute(name, value);
  for (const child of children) if (child !== null && child !== undefined && child !== "") made.append(child);
  return made;
}
function duration(ms) {
  if (ms === null) return "";
  const s = ms / 1000;
  if (s < 9.95) return `${s.toFixed(1)} s`;
  if (s < 60) return `${Math.round(s)} s`;
  const whole = Math.round(s);
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  if (whole < 86400) return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
  return `${Math.floor(whole / 86400)} d ${Math.floor((whole % 86400) / 3600)} h`;
}
function bytes(kib) {
  if (kib === null) return "";
  let value = kib;
  for (const unit of ["KiB", "MiB", "GiB", "TiB"]) {
    if (value < 1023.95) return `${value.toFixed(1)} ${unit}`;
    value /= 1024;
  }
  return `${value.toFixed(1)} PiB`;
}
const badge = (state, mark) => make("span", { class: `badge s-${state}` }, state + (mark || ""));
const clock = (seconds) => {
  const moment = new Date(seconds * 1000);
  const two = (number) => String(number).padStart(2, "0");
  return `${two(moment.getHours())}:${two(moment.getMinutes())}:${two(moment.getSeconds())}.${String(moment.getMilliseconds()).padStart(3, "0")}`;
};
