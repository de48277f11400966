use palyra_common::Confidentiality;
use serde_json::json;

use super::*;

/// A tool whose properties are given as `name:type` words; `s` string, `n` number, `b` boolean, `s[]` strings, `e` one of a list.
fn tool(name: &str, description: &str, arguments: &str) -> ToolDescription {
    let properties: serde_json::Map<String, Value> = arguments
        .split_whitespace()
        .map(|argument| {
            let (name, kind) = argument.split_once(':').unwrap_or((argument, "s"));
            let schema = match kind {
                "s" => json!({ "type": "string" }),
                "s?" => json!({ "anyOf": [{ "type": "string" }, { "type": "null" }], "default": null }),
                "n" => json!({ "type": "number" }),
                "i" => json!({ "type": "integer" }),
                "b" => json!({ "type": "boolean" }),
                "s[]" => json!({ "type": "array", "items": { "type": "string" } }),
                "e" => json!({ "type": "string", "enum": ["a", "b"] }),
                "any" => json!({}),
                other => panic!("unknown kind {other}"),
            };
            (name.to_owned(), schema)
        })
        .collect();
    ToolDescription {
        name: name.to_owned(),
        title: None,
        description: (!description.is_empty()).then(|| description.to_owned()),
        input_schema: json!({ "type": "object", "properties": properties }),
        output_schema: None,
        annotations: None,
    }
}

fn sinks(tool: &ToolDescription) -> String {
    let classification = propose(tool).classification;
    classification.sinks.iter().map(|(name, kind)| format!("{name}={kind}")).collect::<Vec<_>>().join(" ")
}

fn acts(tool: &ToolDescription) -> bool {
    propose(tool).classification.consequence == Consequence::Consequential
}

#[test]
fn the_verb_says_whether_a_tool_acts() {
    for name in [
        "get_balance",
        "list_events",
        "readFile",
        "search-contacts",
        "FindFlights",
        "fetch_page",
        "show_invoice",
        "view_thread",
        "check_availability",
        "count_rows",
        "query_metrics",
        "lookup_word",
        "describe_table",
        "calculate_route",
        "is_open",
        "calendar_list_events",
        "users.get",
        "repo/search",
        "github_get_pull_request",
        "get_post",
        "list_orders",
        "get_schedule",
        "search_books",
        "get_run",
        "list_transfers",
        "get_share_price",
        "compare_prices",
        "summarize_thread",
        "whoami",
    ] {
        assert!(!acts(&tool(name, "", "")), "{name}: {:?}", propose(&tool(name, "", "")).why);
        assert!(propose(&tool(name, "", "")).classification.repeatable, "{name}");
    }
    for name in [
        "send_email",
        "postMessage",
        "create-event",
        "AddMember",
        "update_row",
        "set_temperature",
        "delete_file",
        "remove_label",
        "invite_user",
        "schedule_meeting",
        "reserve_table",
        "book_flight",
        "pay_invoice",
        "transfer_money",
        "share_file",
        "move_card",
        "cancel_order",
        "write_file",
        "upload_photo",
        "publish_page",
        "execute_query",
        "run_tests",
        "mark_as_read",
        "mail_send",
        "calendar.create_event",
        "get_or_create_user",
        "find_and_replace",
        "search_then_book",
        "check_in",
        "check_out_book",
        "post_list",
        "frobnicate",
        "weather",
        "",
        "order_pizza",
        "comment_on_issue",
        "merge_pull_request",
        "git_push",
    ] {
        assert!(acts(&tool(name, "", "")), "{name}");
        assert!(!propose(&tool(name, "", "")).classification.repeatable, "{name}");
    }
}

#[test]
fn description_and_hints_only_make_it_stricter() {
    assert!(acts(&tool("get_messages", "Returns new messages and marks them as read.", "")));
    assert!(acts(&tool("read_queue", "Deletes and returns the first item.", "")));
    assert!(!acts(&tool("get_messages", "Returns the messages. Use send_message to create one.", "")));
    assert!(!acts(&tool("get_messages", "Get the messages and their senders.", "")));

    let hinted = |name: &str, hints: Value| ToolDescription { annotations: Some(hints), ..tool(name, "", "") };
    assert!(acts(&hinted("get_x", json!({ "readOnlyHint": false }))));
    assert!(acts(&hinted("get_x", json!({ "destructiveHint": true }))));
    assert!(!acts(&hinted("get_x", json!({ "readOnlyHint": true, "destructiveHint": true }))));
    assert!(acts(&hinted("delete_x", json!({ "readOnlyHint": true, "idempotentHint": true }))));
    assert!(!propose(&hinted("delete_x", json!({ "idempotentHint": true }))).classification.repeatable);
    assert!(!propose(&hinted("get_x", json!({ "idempotentHint": false }))).classification.repeatable);
}

#[test]
fn arguments_of_tools_that_act() {
    for (name, arguments, expected) in [
        // mail
        ("send_email", "to:s[] cc:s[] subject body", "body=content cc=destination subject=content to=destination"),
        (
            "send_email",
            "recipients:s[] html_body attachments:s[]",
            "attachments=destination html_body=content recipients=destination",
        ),
        ("forward_message", "message_id recipient note:s?", "note=content recipient=destination"),
        ("reply_to_email", "email_id body", "body=content"),
        ("delete_email", "email_id", "email_id=destination"),
        // calendar
        (
            "create_event",
            "title start_time end_time participants:s[] location description",
            "description=content end_time=content location=destination participants=destination start_time=content title=content",
        ),
        ("reschedule_event", "event_id new_start:s", "new_start=content"),
        ("cancelEvent", "eventId", "eventId=destination"),
        // chat
        ("post_message", "channel text", "channel=destination text=content"),
        ("sendMessage", "chatId:i text", "chatId=destination text=content"),
        ("add_user_to_channel", "user channel", "channel=destination user=destination"),
        ("invite_member", "user_email team_id", "team_id=destination user_email=destination"),
        ("create_channel", "channel_name", "channel_name=destination"),
        // files
        ("write_file", "path content", "content=content path=path"),
        ("upload_file", "file_name file_content folder", "file_content=content file_name=path folder=path"),
        ("share_file", "file_id email permission", "email=destination permission=destination"),
        ("share_file", "file_id:i email permission:e", "email=destination"),
        ("move_file", "source_path destination_path", "destination_path=path source_path=path"),
        // web
        ("post_form", "url fields:any", "fields=destination url=destination"),
        (
            "register_webhook",
            "callback_url events:s[] secret",
            "callback_url=destination events=destination secret=credential",
        ),
        // money
        (
            "send_payment",
            "recipient iban amount:n currency",
            "amount=amount currency=content iban=destination recipient=destination",
        ),
        ("transfer", "account_number:i amount:n", "account_number=destination amount=amount"),
        ("pay_invoice", "invoice_id card_cvv:i tip:n", "card_cvv=credential tip=amount"),
        ("set_limit", "daily_transfer_limit:n page_limit:i", "daily_transfer_limit=amount"),
        ("buy_stock", "ticker quantity:i price", "price=amount quantity=amount ticker=destination"),
        // travel
        (
            "book_flight",
            "flight_number date passenger_name seats:i",
            "date=content flight_number=destination passenger_name=destination",
        ),
        ("reserve_hotel", "hotel start_day end_day guests:i", "end_day=content hotel=destination start_day=content"),
        // customers
        ("update_contact", "contact_id phone notes", "contact_id=destination notes=content phone=destination"),
        ("create_ticket", "title priority assignee", "assignee=destination priority=content title=content"),
        // git
        ("git_push", "remote branch force:b", "branch=destination remote=destination"),
        (
            "create_pull_request",
            "repo title body base head",
            "base=destination body=content head=destination repo=destination title=content",
        ),
        // databases and shells
        ("execute_sql", "sql", "sql=command"),
        ("run_command", "command working_dir timeout:i", "command=command working_dir=path"),
        ("run_query", "query database", "database=destination query=destination"),
        ("execute_code", "code language", "code=command language=content"),
        // accounts
        ("update_password", "password", "password=credential"),
        ("login", "username pin:i", "pin=credential username=destination"),
        ("verify_login", "verification_code", "verification_code=credential"),
        ("rotate_key", "api_key page_token", "api_key=credential page_token=destination"),
        ("set_country", "country_code", "country_code=content"),
        // devices
        ("unlock_door", "door code", "code=command door=destination"),
        ("set_temperature", "room celsius:n", "room=destination"),
    ] {
        let tool = tool(name, "", arguments);
        assert!(acts(&tool), "{name}");
        assert_eq!(sinks(&tool), expected, "{name} {:?}", propose(&tool).why);
    }
}

#[test]
fn arguments_of_tools_that_read() {
    for (name, description, arguments, expected) in [
        ("get_events", "", "day calendar_id", ""),
        ("search_emails", "", "query sender", ""),
        ("read_file", "", "path", ""),
        ("get_user_info", "", "user", ""),
        ("fetch", "", "url", "url=destination"),
        ("get_webpage", "", "link:s", "link=destination"),
        ("check_host", "", "hostname port:i", "hostname=destination"),
        ("get_links", "", "urls:s[]", "urls=destination"),
        ("get_profile", "", "access_token", "access_token=credential"),
        ("list_items", "", "page_token max_tokens:i limit:i", ""),
        ("calculate", "", "expression", ""),
        ("search", "", "sort_code country_code", ""),
    ] {
        let tool = tool(name, description, arguments);
        assert!(!acts(&tool), "{name}");
        assert_eq!(sinks(&tool), expected, "{name}");
    }
}

#[test]
fn what_executes_acts_whatever_its_name_says() {
    for (name, description, arguments) in [
        ("query", "Runs a statement on the SQL database", "query"),
        ("read_records", "", "sql"),
        ("get_result", "", "python_script"),
        ("check_output", "", "command"),
        ("query_graph", "GraphQL access to the shop", "query"),
    ] {
        let tool = tool(name, description, arguments);
        assert!(acts(&tool), "{name}: {:?}", propose(&tool).why);
        assert!(sinks(&tool).contains("=command"), "{name}: {}", sinks(&tool));
    }
}

#[test]
fn an_object_decides_what_its_most_telling_field_decides() {
    let mut nested = tool("send_message", "", "");
    nested.input_schema = json!({
        "properties": {
            "message": { "$ref": "#/$defs/Message" },
            "options": { "type": "object", "properties": { "urgent": { "type": "boolean" } } },
            "extra": { "type": "object", "additionalProperties": true },
            "texts": { "type": "array", "items": { "type": "object", "properties": { "body": { "type": "string" } } } },
            "loop": { "$ref": "#/properties/loop" },
            "lost": { "$ref": "https://elsewhere.example/schema" },
        },
        "$defs": { "Message": { "type": "object", "properties": {
            "to": { "oneOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }] },
            "text": { "type": "string" },
        } } },
    });
    assert_eq!(sinks(&nested), "extra=destination loop=destination lost=destination message=destination texts=content");
}

#[test]
fn formats_speak_where_names_are_silent() {
    let mut formats = tool("create_thing", "", "");
    formats.input_schema = json!({ "properties": {
        "x": { "type": "string", "format": "date-time" },
        "y": { "type": "string", "format": "uri" },
        "z": { "type": "string", "format": "email" },
        "name": { "type": "string" },
    } });
    assert_eq!(sinks(&formats), "name=content x=content y=destination z=destination");
    formats.name = "get_thing".to_owned();
    assert_eq!(sinks(&formats), "y=destination");
}

fn fields(name: &str, output: Value) -> String {
    let tool = ToolDescription { output_schema: Some(output), ..tool(name, "", "") };
    let output = propose(&tool).classification.output;
    assert_eq!(output.integrity, palyra_common::Integrity::Untrusted);
    output.fields.iter().map(|class| format!("{}={}", class.field, class.role)).collect::<Vec<_>>().join(" ")
}

fn record(fields: &[(&str, &str)]) -> Value {
    let properties: serde_json::Map<String, Value> = fields
        .iter()
        .map(|(name, kind)| {
            let schema = match kind.split_once('/') {
                Some((kind, format)) => json!({ "type": kind, "format": format }),
                None => json!({ "type": kind }),
            };
            ((*name).to_owned(), schema)
        })
        .collect();
    json!({ "type": "object", "properties": properties })
}

fn list_of(item: &Value) -> Value {
    json!({ "type": "object", "properties": { "result": { "type": "array", "items": item } } })
}

#[test]
fn fields_of_results() {
    let message = record(&[
        ("id", "integer"),
        ("sender", "string"),
        ("body", "string"),
        ("sent_at", "string"),
        ("read", "boolean"),
        ("thread_id", "string"),
    ]);
    assert_eq!(
        fields("read_messages", list_of(&message)),
        "result.*.id=assigned result.*.read=assigned result.*.sender=author result.*.sent_at=assigned result.*.thread_id=assigned"
    );
    let transaction = record(&[
        ("amount", "number"),
        ("date", "string"),
        ("recipient", "string"),
        ("subject", "string"),
        ("account_number", "integer"),
    ]);
    assert_eq!(fields("get_transactions", list_of(&transaction)), "result.*.amount=assigned result.*.date=assigned");
    let event = record(&[
        ("start", "string/date-time"),
        ("title", "string"),
        ("created_by", "string"),
        ("uid", "string/uuid"),
        ("status", "string"),
    ]);
    assert_eq!(fields("get_event", event), "created_by=author start=assigned status=assigned uid=assigned");
    let post = record(&[("author", "string"), ("text", "string"), ("from", "array")]);
    assert_eq!(fields("get_post", post), "author=author");
    assert_eq!(fields("get_balance", json!({ "type": "number" })), ".=assigned");
    assert_eq!(fields("get_balance", json!({ "type": "string" })), "");
    let issue = json!({ "type": "object", "properties": {
        "state": { "enum": ["open", "closed"] },
        "assignee": { "anyOf": [record(&[("id", "integer"), ("login", "string")]), { "type": "null" }] },
        "labels": { "type": "array", "items": { "type": "string" } },
        "counts": { "type": "object", "additionalProperties": { "type": "integer" } },
        "a.b": { "type": "integer" },
    } });
    assert_eq!(fields("get_issue", issue), "assignee.id=assigned counts.*=assigned state=assigned");
    // A number or a text is not a number.
    assert_eq!(
        fields(
            "get_value",
            json!({ "properties": { "v": { "type": ["number", "string"] }, "w": { "type": ["number", "null"] } } })
        ),
        "w=assigned"
    );
    let profile = record(&[("status", "string"), ("bio", "string"), ("user_id", "string")]);
    assert_eq!(fields("get_user_profile", profile), "user_id=assigned");
}

#[test]
fn lists_of_the_users_own_things() {
    let names = || list_of(&json!({ "type": "string" }));
    assert_eq!(fields("get_channels", names()), "result.*=identifier");
    assert_eq!(fields("list_folders", json!({ "type": "array", "items": { "type": "string" } })), "*=identifier");
    assert_eq!(fields("get_users_in_channel", names()), "result.*=identifier");
    assert_eq!(fields("channels_list", names()), "result.*=identifier");
    assert_eq!(
        fields(
            "listBranches",
            json!({ "properties": { "branches": { "type": "array", "items": { "type": "string" } } } })
        ),
        "branches.*=identifier"
    );
    assert_eq!(
        fields(
            "list_repositories",
            list_of(&record(&[("id", "integer"), ("name", "string"), ("description", "string")]))
        ),
        "result.*.id=assigned result.*.name=identifier"
    );
    for other in ["get_channel_messages", "read_inbox", "search_notes", "list_users_messages"] {
        assert_eq!(fields(other, names()), "", "{other}");
    }
    let contact = record(&[("id", "string"), ("name", "string"), ("email", "string"), ("bio", "string")]);
    assert_eq!(
        fields("search_contacts_by_name", list_of(&contact)),
        "result.*.email=identifier result.*.id=assigned result.*.name=identifier"
    );
}

#[test]
fn on_the_open_web_nothing_is_assigned_and_nothing_is_private() {
    let page = record(&[("id", "integer"), ("title", "string"), ("author", "string")]);
    for (name, description, arguments) in [
        ("get_webpage", "", "url"),
        ("web_search", "", "query"),
        ("search_news", "", "topic"),
        ("fetch", "Fetches a page from the internet", "url"),
        ("get_article", "Reads an article of Wikipedia", "title"),
        ("read_url", "", "url"),
    ] {
        let tool = ToolDescription { output_schema: Some(page.clone()), ..tool(name, description, arguments) };
        let output = propose(&tool).classification.output;
        assert_eq!(output.confidentiality, Confidentiality::Public, "{name}");
        assert!(output.fields.is_empty(), "{name}");
    }
    for (name, description, arguments) in [
        ("get_file", "Returns the url of a file", "file_id"),
        ("get_inbox", "Your inbox, as on the website", ""),
        ("post_webpage", "Publishes on the web", "url content"),
        ("get_invoice", "", "link"),
        ("get_mail_page", "Mail from the internet to your account", ""),
    ] {
        let output = propose(&tool(name, description, arguments)).classification.output;
        assert_eq!(output.confidentiality, Confidentiality::Private, "{name}");
    }
}

#[test]
fn every_choice_has_a_reason() {
    let mut explained = tool("send_email", "Sends an e-mail.", "to:s[] body message_id");
    explained.output_schema = Some(record(&[("id", "string")]));
    let why = propose(&explained).why;
    for words in [
        "consequential",
        "argument to: destination",
        "argument body: content",
        "argument message_id",
        "field id: assigned",
        "not repeatable",
    ] {
        assert!(why.iter().any(|reason| reason.contains(words)), "{words}: {why:?}");
    }
}

#[test]
fn hostile_schemas_are_survived() {
    let mut deep = json!({ "type": "string" });
    for _ in 0..100 {
        deep = json!({ "type": "object", "properties": { "a": deep } });
    }
    let wide: serde_json::Map<String, Value> =
        (0..60).map(|n| (format!("f{n}"), json!({ "$ref": "#/$defs/w" }))).collect();
    let tree = json!({ "$ref": "#/$defs/w", "$defs": { "w": { "type": "object", "properties": wide } } });
    let either = vec![json!({ "$ref": "#/$defs/e" }); 60];
    let bush = json!({ "$ref": "#/$defs/e", "$defs": { "e": { "anyOf": either } } });
    let circular = json!({ "$ref": "#/$defs/x", "$defs": { "x": { "anyOf": [{ "$ref": "#/$defs/x" }, { "$ref": "#/$defs/x" }] } } });
    for schema in [
        deep,
        tree,
        bush,
        circular,
        json!([]),
        json!("x"),
        json!({ "properties": 7 }),
        json!({ "type": 7, "items": [] }),
    ] {
        let hostile = ToolDescription {
            input_schema: json!({ "properties": { "a": schema, "b": schema }, "$defs": schema.get("$defs") }),
            output_schema: Some(schema),
            ..tool("create_x", "", "")
        };
        assert!(acts(&hostile));
    }
    let odd = ToolDescription { input_schema: json!({ "properties": ["a"] }), ..tool("create_x", "", "") };
    assert_eq!(sinks(&odd), "");
}
