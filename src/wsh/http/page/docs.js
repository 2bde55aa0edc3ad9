"use strict";
const prefix = document.body.dataset.prefix;
const main = document.getElementById("routes");

function make(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value !== undefined) node.setAttribute(key, value);
  }
  node.append(...children);
  return node;
}

function headers(extra) {
  const token = document.getElementById("token").value.trim();
  if (token) return { ...extra, Authorization: `Bearer ${token}` };
  // The secret of the signed-in page, which is of the same origin.
  const secret = localStorage.getItem(`wsh.secret${prefix}`);
  return secret ? { ...extra, "Wsh-Page": secret } : extra;
}

function sample(schema, all, depth = 0) {
  if (!schema || depth > 6) return null;
  if (schema.$ref) return sample(all[schema.$ref.split("/").pop()], all, depth + 1);
  if ("default" in schema) return schema.default;
  if (schema.const !== undefined) return schema.const;
  if (schema.enum) return schema.enum[0];
  const one = (schema.anyOf || schema.oneOf || []).find((s) => s.type !== "null");
  if (one) return sample(one, all, depth + 1);
  if (schema.type === "object") {
    const found = {};
    for (const name of schema.required || []) found[name] = sample((schema.properties || {})[name], all, depth + 1);
    return found;
  }
  if (schema.type === "array") return schema.items && (schema.minItems || 0) > 0 ? [sample(schema.items, all, depth + 1)] : [];
  if (schema.type === "integer" || schema.type === "number") return schema.minimum ?? 1;
  if (schema.type === "boolean") return false;
  return "";
}

function operation(method, path, detail, all) {
  const form = make("form", {});
  const fields = [];
  for (const parameter of detail.parameters || []) {
    const kind = parameter.schema.type || (parameter.schema.anyOf || []).map((s) => s.type).join(" | ") || "text";
    const input = make("input", { name: parameter.name, placeholder: kind, required: parameter.required ? "" : undefined });
    if (parameter.schema.default !== undefined && parameter.schema.default !== null) {
      input.placeholder = `${kind}, default ${parameter.schema.default}`;
    }
    fields.push([parameter, input]);
    form.append(make("label", {}, make("span", {}, parameter.name, " ", make("small", {}, parameter.in)), input));
  }
  let body = null;
  let type = null;
  if (detail.requestBody) {
    [type] = Object.keys(detail.requestBody.content);
    body = make("textarea", { "aria-label": "body", spellcheck: "false" });
    if (type === "application/json") body.value = JSON.stringify(sample(detail.requestBody.content[type].schema, all), null, 1);
    form.append(body);
  }
  const answer = make("pre", { hidden: "", tabindex: "0" });
  form.append(make("button", {}, "Send"), answer);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    let target = path;
    const query = new URLSearchParams();
    for (const [parameter, input] of fields) {
      if (parameter.in === "path") target = target.replace(`{${parameter.name}}`, encodeURIComponent(input.value));
      else if (input.value !== "") query.set(parameter.name, input.value);
    }
    const url = prefix + target + (query.size ? `?${query}` : "");
    const options = { method: method.toUpperCase(), headers: headers(type ? { "Content-Type": type } : {}) };
    if (body) options.body = body.value;
    answer.hidden = false;
    answer.textContent = "…";
    const began = performance.now();
    try {
      const response = await fetch(url, options);
      let text = await response.text();
      try { text = JSON.stringify(JSON.parse(text), null, 1); } catch { /* not JSON: shown as it is */ }
      answer.textContent = `${response.status} in ${Math.round(performance.now() - began)} ms\n${text}`;
    } catch (problem) {
      answer.textContent = String(problem);
    }
  });
  const codes = Object.entries(detail.responses).map(([code, r]) => `${code} ${r.description}`).join("\n");
  form.append(make("details", {}, make("summary", {}, "Answers"), make("pre", {}, codes)));
  return make("details", { "data-words": `${method} ${path} ${detail.summary}`.toLowerCase() },
    make("summary", {}, make("span", { class: "method" }, method.toUpperCase()), make("span", { class: "path" }, path),
      make("span", { class: "what" }, detail.summary)), form);
}

async function load() {
  const response = await fetch(`${prefix}/openapi.json`, { headers: headers({}) });
  if (!response.ok) {
    main.replaceChildren(make("p", {}, `The document could not be read (${response.status}).`));
    return;
  }
  const api = await response.json();
  const groups = new Map();
  for (const [path, methods] of Object.entries(api.paths)) {
    for (const [method, detail] of Object.entries(methods)) {
      const group = detail.tags[0];
      if (!groups.has(group)) groups.set(group, []);
      groups.get(group).push(operation(method, path, detail, api.components.schemas));
    }
  }
  main.replaceChildren();
  for (const [group, nodes] of groups) main.append(make("section", {}, make("h2", {}, group), ...nodes));
}

document.getElementById("filter").addEventListener("input", (event) => {
  const words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const node of main.querySelectorAll("[data-words]")) {
    node.hidden = !words.every((word) => node.dataset.words.includes(word));
  }
});
document.getElementById("token").addEventListener("change", load);
load();
