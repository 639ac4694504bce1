// Shows the hub's own description. A token that is pasted stays in this page's memory; nothing is asked of other hosts.
SwaggerUIBundle({
  dom_id: "#reference",
  url: new URL("openapi.json", document.baseURI).href,
  presets: [SwaggerUIBundle.presets.apis],
  layout: "BaseLayout",
  deepLinking: true,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  filter: true,
  persistAuthorization: false,
  validatorUrl: null,
});
