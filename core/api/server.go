package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/cairnsync/cairn/sdk/client"
)

// Version is the version of the API, not of the program.
const Version = "0.1.0"

// Handler serves the API of a host.
func Handler(host Host) http.Handler {
	mux := http.NewServeMux()
	register(mux, host)
	return guard(mux)
}

// Document is the OpenAPI document of the API.
func Document() ([]byte, error) {
	spec := register(http.NewServeMux(), nil).OpenAPI()
	text, err := json.MarshalIndent(spec, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode OpenAPI document: %w", err)
	}
	return append(text, '\n'), nil
}

func register(mux *http.ServeMux, host Host) huma.API {
	config := huma.DefaultConfig("Cairn", Version)
	config.Info.Description = "Pipelines, their checkpoints and where those are safe."
	config.CreateHooks = nil // they would add a $schema link to every answer
	config.DocsPath, config.SchemasPath = "", ""
	config.RejectUnknownQueryParameters = true
	config.Transformers = []huma.Transformer{sameShape}
	routes := &routes{api: humago.New(mux, config), host: host}
	routes.pipelines()
	routes.checkpoints()
	routes.syncs()
	routes.remote()
	routes.retention()
	routes.data()
	routes.health()
	mux.HandleFunc("/", elsewhere(mux))
	delete(config.Components.Schemas.Map(), "ErrorModel") // the library's own error shape; sameShape replaces it
	delete(config.Components.Schemas.Map(), "ErrorDetail")
	return routes.api
}

// elsewhere answers what is no call of the API, in the shape of all other errors.
func elsewhere(mux *http.ServeMux) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		allowed := methods(mux, r)
		if len(allowed) == 0 {
			refuse(w, Errorf(http.StatusNotFound, client.CodeNotFound, "there is no call %s %s; /openapi.json lists them", r.Method, r.URL.Path))
			return
		}
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		refuse(w, Errorf(http.StatusMethodNotAllowed, client.CodeBadRequest, "%s is not a call of %s: use %s", r.Method, r.URL.Path, strings.Join(allowed, " or ")))
	}
}

// methods are those by which the path of a request can be called.
func methods(mux *http.ServeMux, r *http.Request) []string {
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := mux.Handler(other); pattern != "/" {
			allowed = append(allowed, method)
		}
	}
	return allowed
}

// routes registers the calls.
type routes struct {
	api  huma.API
	host Host
}

// operation describes one call; every one of them answers errors in the same shape.
func (r *routes) operation(method, path, id, summary string, status int) huma.Operation {
	schema := r.api.OpenAPI().Components.Schemas.Schema(errorType(), true, "Error")
	return huma.Operation{
		Method: method, Path: path, OperationID: id, Summary: summary, DefaultStatus: status,
		Responses: map[string]*huma.Response{"default": {
			Description: "Error",
			Content:     map[string]*huma.MediaType{"application/json": {Schema: schema}},
		}},
	}
}

// comesBack documents a refusal that is a matter of time.
func (r *routes) comesBack(op huma.Operation, status int, why string) {
	refused := *op.Responses["default"]
	refused.Description = why
	refused.Headers = map[string]*huma.Param{"Retry-After": {Description: "Seconds to wait.", Schema: &huma.Schema{Type: huma.TypeInteger}}}
	op.Responses[strconv.Itoa(status)] = &refused
}

// pipeline finds one by name.
func (r *routes) pipeline(name string) (Pipeline, error) {
	for _, p := range r.host.Pipelines() {
		if p.Name() == name {
			return p, nil
		}
	}
	return nil, Errorf(http.StatusNotFound, client.CodePipelineNotFound, "no pipeline is named %q", name).With("pipeline_name", name)
}
