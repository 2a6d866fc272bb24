// An MCP server that speaks HTTPS with the certificate of /tls, read again for each connection.
const fs = require('fs'), https = require('https'), tls = require('tls');
const read = (name) => fs.readFileSync('/tls/' + name);
const answers = {
  initialize: {protocolVersion: '2025-06-18', capabilities: {tools: {}}, serverInfo: {name: 'secure', version: '1'}},
  'tools/list': {tools: [{name: 'one', inputSchema: {type: 'object'}}]},
};
const context = () => tls.createSecureContext({cert: read('tls.crt'), key: read('tls.key')});
https.createServer({SNICallback: (name, done) => done(null, context()), cert: read('tls.crt'), key: read('tls.key')}, (request, response) => {
  let body = '';
  request.on('data', (chunk) => body += chunk).on('end', () => {
    if (request.method === 'GET') return response.end('fine\n');
    if (request.method !== 'POST') return response.writeHead(405).end();
    const message = JSON.parse(body);
    if (message.id === undefined) return response.writeHead(202).end();
    const result = answers[message.method];
    const rest = result ? {result} : {error: {code: -32601, message: 'no such method'}};
    response.setHeader('Content-Type', 'application/json');
    response.end(JSON.stringify({jsonrpc: '2.0', id: message.id, ...rest}));
  });
}).listen(8080);
