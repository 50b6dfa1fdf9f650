// The API, with the token where the server wants one. It is kept for this tab only.

const KEY = "headstart-token";

export class TokenWanted extends Error {}

export function keepToken(token) {
  sessionStorage.setItem(KEY, token);
}

async function asked(path, options) {
  const token = sessionStorage.getItem(KEY);
  const headers = { ...options.headers, ...(token ? { Authorization: `Bearer ${token}` } : {}) };
  let found;
  try {
    found = await fetch(path, { ...options, headers });
  } catch {
    throw new Error("The server does not answer. Is it still running?");
  }
  if (found.status === 401) throw new TokenWanted("This server wants a token.");
  const body = await found.json();
  if (!found.ok) throw new Error(body.detail);
  return body;
}

export function get(path) {
  return asked(`/api/${path}`, {});
}

export function post(path, body) {
  return asked(`/api/${path}`, {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
  });
}
