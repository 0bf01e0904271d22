// Package view holds the read models: what the API, the command line and the page show, as types with
// their JSON names and field docs.
//
// A view is filled by the controllers from the team's state and holds no behaviour besides rendering.
// The API's schema and the client use these types as they are; there is no second copy.
//
// The one promise: a field means the same in the API, in `--json` and on the page.
package view
