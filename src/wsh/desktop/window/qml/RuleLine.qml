import QtQuick
import QtQuick.Controls.Basic
import QtQuick.Layouts

// One rule; its words turn into fields where it stands.
Rectangle {
    id: row
    required property string key
    required property string command
    required property string effect
    required property string modes
    required property string cwd
    required property string workspace
    required property string surface
    required property string comment
    required property bool shipped
    property bool shown: true
    property bool marked: false
    property bool editing: false
    objectName: "rule " + command
    visible: shown
    height: shown ? (editing ? 40 : 32) : 0
    radius: 6
    color: editing ? look.c.raised : hover.hovered ? look.c.hover : "transparent"
    border.width: editing ? 1 : marked ? 2 : 0
    border.color: look.c.accent
    Accessible.role: Accessible.ListItem
    Accessible.name: effect + " " + command
    HoverHandler { id: hover }
    TapHandler { onDoubleTapped: row.edit() }
    function edit() {
        command_.text = command
        comment_.text = comment
        cwd_.text = cwd
        effect_.currentIndex = effect_.model.indexOf(effect)
        modes_.currentIndex = modes_.model.indexOf(modes)
        editing = true
        command_.forceActiveFocus()
    }
    function leave() {
        editing = false
        row.forceActiveFocus() // not the list: it would hand the keys on to the field that had them last
    }
    function save() {
        app.changeRule(key, command_.text.trim(), effect_.currentText, modes_.currentText, comment_.text, cwd_.text.trim())
        leave()
    }
    RowLayout {
        visible: !row.editing
        anchors { fill: parent; leftMargin: 8; rightMargin: 8 }
        spacing: 12
        Text { text: row.effect; color: row.effect === "allow" ? look.c.running : look.c.failed; font.bold: true; Layout.preferredWidth: 44 }
        Text { text: row.command; textFormat: Text.PlainText; color: look.c.text; font.family: "monospace"; Layout.preferredWidth: 240; elide: Text.ElideRight }
        Text { text: row.modes; color: look.c.text_soft; Layout.preferredWidth: 80 }
        Text { text: [row.cwd, row.workspace, row.surface, row.comment].filter(Boolean).join("   "); textFormat: Text.PlainText; color: look.c.text_soft; elide: Text.ElideRight; Layout.fillWidth: true }
        Text { visible: row.shipped && !hover.hovered; text: "shipped"; color: look.c.text_soft; font.pixelSize: 12 }
        PlainButton { visible: hover.hovered; text: "Edit"; tip: "Double click"; onClicked: row.edit() }
        PlainButton { visible: hover.hovered; text: "Remove"; danger: true; onClicked: app.removeRule(row.key) }
    }
    RowLayout {
        visible: row.editing
        anchors { fill: parent; leftMargin: 8; rightMargin: 8 }
        spacing: 8
        Keys.onEscapePressed: row.leave()
        Keys.onReturnPressed: { } // the field has saved already; in the list the same key would begin anew
        Choice { id: effect_; model: ["allow", "deny"]; implicitWidth: 84 }
        Field { id: command_; objectName: "editCommand"; mono: true; placeholderText: "command"; Layout.fillWidth: true; onAccepted: row.save() }
        Choice { id: modes_; model: ["both", "interactive", "headless"]; implicitWidth: 120 }
        Field { id: cwd_; mono: true; placeholderText: "any folder"; Layout.preferredWidth: 130; onAccepted: row.save() }
        Field { id: comment_; placeholderText: "why"; Layout.preferredWidth: 110; onAccepted: row.save() }
        PlainButton { text: "Save"; primary: true; enabled: command_.text.trim() !== ""; onClicked: row.save() }
        PlainButton { text: "Back"; tip: "Escape"; onClicked: row.leave() }
    }
}
