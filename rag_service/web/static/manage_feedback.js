// What people said about answers, for administrators: the bad ones first of all.

import { download, read } from "./api.js";
import { el } from "./dom.js";
import { t } from "./i18n.js";
import { makeRow, moment } from "./listing.js";
import { Frame } from "./manage_frame.js";

export function makeList(section) {
  let thumbs = "down";
  const frame = new Frame(section, {
    title: t("manage_feedback"),
    lead: t("feedback_lead"),
    buttons: [{ label: t("feedback_export"), shape: "download", primary: false, onclick: () => save() }],
    listing: {
      empty: t("feedback_none"),
      load: (slice, signal) => read("/feedback", { ...slice, thumbs: thumbs || null }, signal),
      row,
    },
  });
  const options = [["down", t("thumbs_down")], ["up", t("thumbs_up")], ["", t("thumbs_all")]];
  const choice = el("select", { id: "thumbs" }, ...options.map(([value, words]) => el("option", { value }, words)));
  choice.addEventListener("change", () => {
    thumbs = choice.value;
    frame.show();
  });
  frame.listing.element.before(el("p", { className: "choice" }, el("label", { htmlFor: "thumbs" }, t("show")), choice));

  const save = () => download(`/feedback/export${thumbs ? `?thumbs=${thumbs}` : ""}`, "feedback.jsonl");

  function row({ citation, quote, thumbs: given, question, comment, answer, updatedAt }) {
    return makeRow({
      icon: `thumb-${given}`,
      title: question || "–",
      about: [moment(updatedAt)],
      more: el(
        "div",
        {},
        citation === null ? null : el("p", { className: "muted" }, t("feedback_citation", { quote: quote || `${citation + 1}` })),
        comment ? el("blockquote", {}, comment) : null,
        el("details", { className: "why" }, el("summary", {}, t("answer")), el("p", { className: "plain" }, answer)),
      ),
    });
  }

  return frame.show();
}
