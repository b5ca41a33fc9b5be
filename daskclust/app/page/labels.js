// Names and roles for screen readers that Bokeh's and Panel's widgets lack. Their elements are in shadow roots.
const ROLES = {"explorer-side": ["complementary", "Parameters"], "explorer-main": ["main", "Clusters"]}
const TABLE = {tableholder: "rowgroup", table: "presentation", footer: "rowgroup", "footer-contents": "row", paginator: "gridcell"}
const PLAYER = {slower: "Slower", previous: "Back", pause: "Pause", play: "Play", next: "Step", faster: "Faster"}

function label(root) {
  for (const [name, [role, words]] of Object.entries(ROLES)) {
    for (const each of root.querySelectorAll(`.${name}`)) {
      each.setAttribute("role", role)
      each.setAttribute("aria-label", words)
    }
  }
  for (const card of root.querySelectorAll(".explorer-panel")) card.setAttribute("role", "group")
  for (const handle of root.querySelectorAll(".noUi-handle")) {
    const before = root.host.previousElementSibling?.shadowRoot
    const title = root.querySelector(".bk-slider-title") ?? before?.querySelector(".bk-clearfix")
    handle.setAttribute("aria-label", title?.textContent.split(":")[0] || "value")
  }
  for (const [part, words] of Object.entries(PLAYER)) {
    for (const each of root.querySelectorAll(`button.${part}`)) each.setAttribute("aria-label", words)
  }
  for (const each of root.querySelectorAll("input[type=range]")) each.setAttribute("aria-label", "place")
  // a grid holds rows only: the buttons below a table are in its last one
  for (const [part, role] of Object.entries(TABLE)) {
    for (const each of root.querySelectorAll(`.tabulator-${part}`)) each.setAttribute("role", role)
  }
}

function watch(root) {
  const look = () => {
    label(root)
    for (const each of root.querySelectorAll("*")) {
      if (each.shadowRoot && !each.isWatched) {
        each.isWatched = true
        watch(each.shadowRoot)
      }
    }
  }
  new MutationObserver(look).observe(root, {childList: true, subtree: true})
  look()
}

addEventListener("DOMContentLoaded", () => watch(document.body))
history.pushState = history.replaceState.bind(history) // what the address keeps makes no page to go back to
