// An MCP server that answers until somebody fetches /hang; from then on it takes connections and never answers.
const http = require('http');
const answers = {
  initialize: {protocolVersion: '2025-06-18', capabilities: {tools: {}}, serverInfo: {name: 'fragile', version: '1'}},
  'tools/list': {tools: []},
  ping: {},
};
let hangs = false;
http.createServer((request, response) => {
  if (request.url === '/hang') {
    hangs = true;
    return response.end('from now on\n');
  }
  let body = '';
  request.on('data', (chunk) => body += chunk).on('end', () => {
    if (hangs) return;
    if (request.method !== 'POST') return response.writeHead(405).end();
    const message = JSON.parse(body);
    if (message.id === undefined) return response.writeHead(202).end();
    const result = answers[message.method];
    const rest = result ? {result} : {error: {code: -32601, message: 'no such method'}};
    response.setHeader('Content-Type', 'application/json');
    response.end(JSON.stringify({jsonrpc: '2.0', id: message.id, ...rest}));
  });
}).listen(8080);
