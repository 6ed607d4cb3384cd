use std::sync::Arc;

use super::*;

#[test]
fn defaults_parse_and_show_as_postgresql_does() {
    let settings = Settings::default();
    for definition in SETTINGS.iter() {
        assert!(value::parse(definition, definition.default).is_ok(), "{}", definition.name);
    }
    assert_eq!(settings.show("shared_buffers").unwrap(), "128MB");
    assert_eq!(settings.show("checkpoint_timeout").unwrap(), "5min");
    assert_eq!(settings.show("max_wal_size").unwrap(), "1GB");
    assert_eq!(settings.show("wal_writer_flush_after").unwrap(), "1MB");
    assert_eq!(settings.bytes("wal_writer_flush_after"), 1 << 20);
    assert_eq!(settings.show("bulk_write_buffer_limit").unwrap(), "16MB");
    assert_eq!(settings.show("datestyle").unwrap(), "ISO, MDY");
    assert_eq!(settings.show("statement_timeout").unwrap(), "0");
    assert_eq!(settings.show("server_version_num").unwrap(), "150000");
    assert_eq!(settings.bytes("shared_buffers"), 128 << 20);
}

#[test]
fn units_convert() {
    let mut settings = Settings::default();
    settings.set("shared_buffers", "1GB").unwrap();
    assert_eq!(settings.bytes("shared_buffers"), 1 << 30);
    settings.set("shared_buffers", "1024").unwrap();
    assert_eq!(settings.show("shared_buffers").unwrap(), "8MB");
    settings.set("checkpoint_timeout", "1.5min").unwrap();
    assert_eq!(settings.show("checkpoint_timeout").unwrap(), "90s");
    assert_eq!(settings.duration("checkpoint_timeout").as_secs(), 90);
}

#[test]
fn errors_name_the_nearest() {
    let mut settings = Settings::default();
    let error = settings.set("shared_bufers", "1GB").unwrap_err();
    assert_eq!(error.sqlstate, SqlState::UNDEFINED_OBJECT);
    assert_eq!(error.hint.as_deref(), Some("Perhaps you meant \"shared_buffers\"."));
    let error = settings.set("shared_buffers", "1gb").unwrap_err();
    assert!(error.hint.as_deref().unwrap().contains("Perhaps you meant \"1GB\""), "{error}");
    let error = settings.set("synchronous_commit", "offf").unwrap_err();
    assert!(error.hint.as_deref().unwrap().contains("\"off\""), "{error}");
    let error = settings.set("max_connections", "0").unwrap_err();
    assert_eq!(
        error.message,
        "0 is outside the valid range for parameter \"max_connections\" (1 .. 60000)"
    );
    assert!(settings.set("server_version", "9").is_err());
}

#[test]
fn permissions_are_read_and_shown_in_octal() {
    let mut settings = Settings::default();
    assert_eq!(settings.show("unix_socket_permissions").unwrap(), "0777");
    for (text, shown) in [("0700", "0700"), ("448", "0700"), ("0x1c0", "0700"), ("0", "0000")] {
        settings.set("unix_socket_permissions", text).unwrap();
        assert_eq!(settings.show("unix_socket_permissions").unwrap(), shown, "{text}");
    }
    assert_eq!(settings.int("unix_socket_permissions"), 0);
    for wrong in ["01000", "777", "-1", "rwx", "0700kB"] {
        let error = settings.set("unix_socket_permissions", wrong).unwrap_err();
        assert_eq!(error.sqlstate, SqlState::INVALID_PARAMETER_VALUE, "{wrong}");
    }
}

#[test]
fn a_superuser_sets_the_limit_of_temporary_files() {
    let id = SettingId::named("temp_file_limit").unwrap();
    assert_eq!(id.definition().context.as_str(), "superuser");
    // Every user is one, for now.
    let mut session = SessionSettings::new(Arc::new(Settings::default()));
    session.set(&id.into(), Some("1MB"), false).unwrap();
    assert_eq!(session.temp_file_limit_kb(), Some(1024));
    session.set(&id.into(), None, false).unwrap();
    assert_eq!(session.temp_file_limit_kb(), None);
}

#[test]
fn what_the_database_has_found_is_shown_where_nothing_is_set() {
    let mut settings = Settings::default();
    settings.found("query_memory_limit", 3 << 10);
    assert_eq!(settings.show("query_memory_limit").unwrap(), "3MB");
    assert_eq!(settings.int("query_memory_limit"), 0);
    let session = SessionSettings::new(Arc::new(settings.clone()));
    assert_eq!(session.show(SettingId::named("query_memory_limit").unwrap()), "3MB");
    settings.set("query_memory_limit", "1MB").unwrap();
    assert_eq!(settings.show("query_memory_limit").unwrap(), "1MB");
}

#[test]
fn configuration_files() {
    let parse = |text| configuration::files::parse(Path::new("millpond.conf"), text);
    let text = "# hello\nshared_buffers = 64MB # small\napplication_name 'it''s me'\n\n";
    let found: Vec<_> = parse(text)
        .unwrap()
        .into_iter()
        .map(|entry| (entry.name, entry.text, entry.line))
        .collect();
    let expected = [("shared_buffers", "64MB", 2), ("application_name", "it's me", 3)];
    assert_eq!(found, expected.map(|(name, text, line)| (name.to_owned(), text.to_owned(), line)));
    let error = parse("\nwork_mem 'x").unwrap_err();
    let expected = "line 2 of configuration file \"millpond.conf\"";
    assert_eq!(error.context.as_deref(), Some(expected));
}

#[test]
fn set_is_transactional() {
    let mut session = SessionSettings::new(std::sync::Arc::new(Settings::default()));
    let id = SettingId::named("work_mem").unwrap();
    session.set(&id.into(), Some("1MB"), false).unwrap();
    session.end_transaction(false);
    assert_eq!(session.show(id), "4MB");
    session.set(&id.into(), Some("1MB"), false).unwrap();
    session.set(&id.into(), Some("2MB"), true).unwrap();
    assert_eq!(session.show(id), "2MB");
    session.end_transaction(true);
    assert_eq!(session.show(id), "1MB");
    session.set(&id.into(), None, false).unwrap();
    session.end_transaction(true);
    assert_eq!(session.show(id), "4MB");
    assert!(session.set(&SettingName::of("shared_buffers").unwrap(), Some("1"), false).is_err());
}

#[test]
fn no_two_settings_share_a_name() {
    let twice = SETTINGS.windows(2).find(|pair| pair[0].name.eq_ignore_ascii_case(pair[1].name));
    assert!(twice.is_none(), "{twice:?}");
}

proptest::proptest! {
    #[test]
    fn no_text_panics(text in ".*") {
        for definition in SETTINGS.iter() {
            if let Ok(value) = value::parse(definition, &text) {
                let _ = value::show(definition, &value);
            }
        }
        let _ = configuration::files::parse(Path::new("millpond.conf"), &text);
    }
}

#[test]
fn limits_of_vacuums_buffers() {
    assert_eq!(usage_limit_kb("0").unwrap(), 0);
    assert_eq!(usage_limit_kb("128").unwrap(), 128);
    assert_eq!(usage_limit_kb("16 GB").unwrap(), 16 << 20);
    for (wrong, hint) in
        [("127", false), ("-1", false), ("17GB", false), ("some", false), ("1 mb", true)]
    {
        let error = usage_limit_kb(wrong).unwrap_err();
        let message = "BUFFER_USAGE_LIMIT option must be 0 or between 128 kB and 16777216 kB";
        assert_eq!((error.message.as_str(), error.hint.is_some()), (message, hint), "{wrong}");
    }
    let mut settings = Settings::new();
    let error = settings.set("vacuum_buffer_usage_limit", "127kB").unwrap_err();
    assert_eq!(error.message, "invalid value for parameter \"vacuum_buffer_usage_limit\": 127");
    assert_eq!(
        error.detail.as_deref(),
        Some("\"vacuum_buffer_usage_limit\" must be 0 or between 128 kB and 16777216 kB.")
    );
    settings.set("vacuum_buffer_usage_limit", "0").unwrap();
    settings.set("bulk_read_buffer_limit", "64kB").unwrap();
    let session = SessionSettings::new(Arc::new(settings));
    let bulk = session.bulk_access();
    assert_eq!((bulk.rings.vacuum, bulk.rings.bulk_read, bulk.rings.bulk_write), (0, 8, 2048));
    assert!(bulk.synchronize_scans);
}

#[test]
fn reset_leads_back_to_what_the_client_has_started_with() {
    let mut session = SessionSettings::new(Arc::new(Settings::default()));
    let work_mem = SettingId::named("work_mem").unwrap();
    let before = session.show(work_mem);
    session.set_at_start("work_mem", "1MB").unwrap();
    session.set_at_start("work_mem", "2MB").unwrap();
    let name = SettingId::named("application_name").unwrap();
    let resets: [fn(&mut SessionSettings, SettingId); 2] =
        [|s, id| s.set(&id.into(), None, false).unwrap(), |s, _| s.reset_all()];
    for reset in resets {
        session.set(&work_mem.into(), Some("8MB"), false).unwrap();
        session.set(&name.into(), Some("mine"), false).unwrap();
        session.end_transaction(true);
        reset(&mut session, work_mem);
        session.end_transaction(true);
        assert_eq!(session.show(work_mem), "2MB");
        assert_ne!(session.show(work_mem), before);
    }
    assert_eq!(session.show(name), "");
}

#[test]
fn settings_of_applications_are_bounded() {
    let mut session = SessionSettings::new(Arc::new(Settings::default()));
    let text = "x".repeat(6 << 20);
    let mut set =
        |name: &str, text: &str| session.set(&SettingName::of(name).unwrap(), Some(text), false);
    set("app.a", &text).unwrap();
    set("app.b", &text).unwrap();
    let error = set("app.c", &text).unwrap_err();
    assert_eq!(error.sqlstate, SqlState::PROGRAM_LIMIT_EXCEEDED);
    // What is replaced does not count.
    set("app.a", &text).unwrap();
    set("app.a", "").unwrap();
    set("app.c", &text).unwrap();
}

/// What a statement sets is kept until it ends.
#[test]
fn settings_that_a_statement_sets_are_bounded() {
    let mut session = SessionSettings::new(Arc::new(Settings::default()));
    let text = "x".repeat(6 << 20);
    let set = |session: &SessionSettings| session.call_set("app.a", Some(&text), false);
    set(&session).unwrap();
    set(&session).unwrap();
    let error = set(&session).unwrap_err();
    assert_eq!(error.sqlstate, SqlState::PROGRAM_LIMIT_EXCEEDED);
    session.take_calls();
    set(&session).unwrap();
}
